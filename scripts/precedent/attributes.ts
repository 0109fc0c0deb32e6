/** Reads attributes, `[[…]]`, with the types to which they apply. */
import type { Declaration } from "./declarations.ts";
import { generalForm, valueForm } from "./forms.ts";
import type { Program } from "./program.ts";
import { behindClosing, partsOf, type Token } from "./tokens.ts";
import { keywords } from "./vocabulary.ts";

export class Attributes {
  readonly #program: Program;

  constructor(program: Program) {
    this.#program = program;
  }

  /** An attribute after the name to which it applies. */
  of([start, end]: readonly [number, number], found: Declaration): void {
    const form = /[&*[]/.test(found.form) ? generalForm(found) : valueForm(found);
    for (const name of this.#namesIn(start, end))
      this.#program.report(`attribute ${form} [[${name}]]`, this.#program.tokens[start]);
  }

  /** An attribute before the name to which it applies. */
  before(at: number): number {
    const end = behindClosing(this.#program.tokens, at);
    const before = this.#program.tokens[at - 1];
    if (before && this.#program.names.has(at - 1)) return end; // the attribute was recorded with its declaration
    if (before?.text === "]" || isBehindName(this.#program.tokens, at, this.#program.names)) return end;
    const next = this.#program.tokens[end];
    const word = next?.kind === "name" ? (keywords.has(next.text) ? next.text : "T") : (next?.text ?? "");
    for (const name of this.#namesIn(at, end))
      this.#program.report(
        `attribute ${before?.text === "template" ? "template " : ""}[[${name}]] ${word}`,
        this.#program.tokens[at],
      );
    return end;
  }

  #namesIn(start: number, end: number): string[] {
    return partsOf(this.#program.tokens, start + 2, end - 2).map(([from, to]) =>
      this.#program.tokens
        .slice(from, to)
        .map(({ kind, text }, index) => (index === 0 || kind === "mark" ? text : kind === "text" ? '"…"' : "N"))
        .join("")
        .replace(/\((?:N|[-+*/()])+\)$/, "(N)")
        .replace(/\((?:"…")+\)$/, '("…")'),
    );
  }
}

/** Whether tokens are after a name, with its array sizes or further attributes. */
function isBehindName(tokens: readonly Token[], at: number, names: ReadonlySet<number>): boolean {
  let before = at - 1;
  for (let depth = 0; before >= 0 && at - before < 60; before--) {
    if (tokens[before].text === "]") depth++;
    else if (tokens[before].text === "[") depth--;
    else if (depth === 0) return names.has(before);
  }
  return false;
}
