/** Rules of a grammar before they are written. Rules that derive no finite text are dropped. */

export type Expression =
  /** Text in XGrammar's notation that matches some text. */
  | { readonly kind: "written"; readonly text: string }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "all" | "one"; readonly parts: readonly Expression[] }
  | { readonly kind: "times"; readonly part: Expression; readonly least: number; readonly most: number };

export const written = (text: string): Expression => ({ kind: "written", text });
export const rule = (name: string): Expression => ({ kind: "rule", name });
export const all = (...parts: readonly Expression[]): Expression => ({ kind: "all", parts });
export const one = (parts: readonly Expression[]): Expression => ({ kind: "one", parts });
export const times = (part: Expression, least: number, most: number): Expression => ({
  kind: "times",
  part,
  least,
  most,
});
/** Matches no text. */
export const none: Expression = one([]);

const EMPTY = '""';
export const empty = written(EMPTY);
/** White space between parts of JSON. It is limited because a model could write spaces forever. */
export const spaces = written("[ \\n\\t]{0,2}");
export const comma = all(written('","'), spaces);

/** The longest repeat that XGrammar 0.1.27 can count. In longer ones with a minimum above 0, it loses shorter texts. */
const COUNTED = 128;

export class Productions {
  private readonly bodies = new Map<string, Expression>();
  private readonly lines: string[] = [];
  private count = 0;
  private ended = new Set<string>();

  /** The number of rules. */
  get size(): number {
    return this.bodies.size;
  }

  define(name: string, body: Expression): void {
    this.bodies.set(name, body);
  }

  /** Returns the rules reachable from `root`, one per line; undefined if no finite text matches. */
  write(root: string): string | undefined {
    this.ended = this.findEnded();
    if (!this.ended.has(root)) return undefined;
    for (const [name, body] of this.bodies)
      if (this.ended.has(name))
        this.lines.push(`${name} ::= ${body.kind === "one" ? this.options(body.parts) : this.text(body)}`);
    return this.lines.join("\n");
  }

  private findEnded(): Set<string> {
    const ended = new Set<string>();
    for (let before = -1; before < ended.size; ) {
      before = ended.size;
      for (const [name, body] of this.bodies) if (!ended.has(name) && ends(body, ended)) ended.add(name);
    }
    return ended;
  }

  private text(expression: Expression): string {
    switch (expression.kind) {
      case "written":
        return expression.text;
      case "rule":
        return expression.name;
      case "all":
        return expression.parts.map((part) => this.text(part)).join(" ") || EMPTY;
      case "one":
        return this.choice(expression.parts);
      case "times":
        return this.repeat(expression.part, expression.least, expression.most);
    }
  }

  private choice(parts: readonly Expression[]): string {
    const options = this.options(parts);
    return options.includes(" ") ? this.extra(options) : options;
  }

  /** Options with a common prefix are kept apart only if they are separate rules. */
  private options(parts: readonly Expression[]): string {
    const options = parts.filter((part) => ends(part, this.ended));
    if (options.length === 1) return this.text(options[0]);
    const apart = (expression: Expression) =>
      expression.kind === "rule" ? expression.name : this.extra(`held_empty ${this.text(expression)}`);
    return options.map(apart).join(" | ");
  }

  private repeat(part: Expression, least: number, most: number): string {
    if (most === 0 || !ends(part, this.ended)) return EMPTY;
    const name = this.extra(`held_empty ${this.text(part)}`);
    const end = (value: number) => (Number.isFinite(value) ? value : "");
    if (least === 0 || most <= COUNTED || most === least) return `${name}{${least},${end(most)}}`;
    return `${name}{${least}} ${name}{0,${end(most - least)}}`;
  }

  private extra(body: string): string {
    const name = `part_${this.count++}`;
    this.lines.push(`${name} ::= ${body}`);
    return name;
  }
}

function ends(expression: Expression, ended: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case "written":
      return true;
    case "rule":
      return ended.has(expression.name);
    case "all":
      return expression.parts.every((part) => ends(part, ended));
    case "one":
      return expression.parts.some((part) => ends(part, ended));
    case "times":
      return expression.least === 0 || ends(expression.part, ended);
  }
}
