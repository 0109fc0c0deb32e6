/**
 * Writes trees of regular expressions as rules of XGrammar's notation, a variant of EBNF.
 *
 * Its classes hold bytes if they have more than one element, whereas a lone character is written in UTF-8; so each byte
 * comes as a class, a lone one twice. Where a choice begins with a rule without references, it puts the rule in its
 * place; and states of choices that begin alike it may merge too often (its issue 618, in 0.1.27). So options and what
 * is repeated are rules of their own, with a reference.
 */
import { ArgumentError } from "../../core/errors.ts";
import { automatonOf, type State } from "./automaton.ts";
import { type CodePoints, complement, difference, intersection, type Range, rangeOf, union } from "./code_points.ts";
import { isNothing, type Pattern } from "./pattern.ts";
import { type ByteBranch, byteBranches } from "./utf8.ts";

/** How characters are written: as they are, or as between the quotes of JSON. */
export type Notation = "plain" | "json";

/** The largest automaton, in classes of bytes. A vocabulary of 100,000 tokens takes about a millisecond for each. */
const MOST_CLASSES = 20_000;
/** The longest text, an end without a limit not counted. */
const MOST_TIMES = 10_000;
/** XGrammar counts longer repeats, and has no more states for them. */
const UNROLLED = 256;
const COUNTED = 128;

/** An expression, and how large its automaton is. */
interface Written {
  readonly text: string;
  readonly classes: number;
  /** The most characters, repeats without an end taken as one. */
  readonly times: number;
  /** Of a character: all its bytes in one expression. Tokens of several characters are then known beforehand. */
  readonly inline?: string | undefined;
  /** Whether no text matches. */
  readonly isNothing?: boolean;
}

/** Of one character. */
type WrittenSet = Omit<Written, "times">;

const EMPTY = "held_empty";
const NOTHING: Written = { text: EMPTY, classes: 0, times: 0, isNothing: true };

/** Rules of one grammar. */
export class PatternRules {
  private readonly bodies: string[] = [];
  private readonly sets = { plain: new Map<CodePoints, WrittenSet>(), json: new Map<CodePoints, WrittenSet>() };
  private names = 0;
  private classes = 0;

  /** All rules, a line each. */
  get text(): string {
    return [`${EMPTY} ::= ""`, ...this.bodies].join("\n");
  }

  /**
   * The name of a rule for what matches an expression; undefined if no text does.
   *
   * @throws {ArgumentError} `tooLarge`
   */
  add(pattern: Pattern, notation: Notation): string | undefined {
    return isNothing(pattern) ? undefined : this.named(this.write(pattern, notation));
  }

  /** The same, as an automaton in which no two ways begin alike. */
  addDeterministic(pattern: Pattern): string | undefined {
    return this.named(this.automaton(pattern, "plain"));
  }

  private named({ text, classes, isNothing }: Written): string | undefined {
    if (isNothing) return undefined;
    this.classes += classes;
    checkSize(this.classes);
    return this.rule(`${EMPTY} ${text}`);
  }

  private rule(body: string): string {
    const name = this.name();
    this.define(name, body);
    return name;
  }

  private name(): string {
    return `held_${this.names++}`;
  }

  private define(name: string, body: string): void {
    this.bodies.push(`${name} ::= ${body}`);
  }

  private write(pattern: Pattern, notation: Notation): Written {
    switch (pattern.kind) {
      case "set":
        return { ...this.set(pattern.set, notation), times: 1 };
      case "sequence":
        return this.sequence(pattern.parts, notation);
      case "choice":
        return this.choice(pattern.options, notation);
      case "repeat":
        return this.repeat(pattern, notation);
      default:
        return this.automaton(pattern, notation);
    }
  }

  /** A rule for each state. */
  private automaton(pattern: Pattern, notation: Notation): Written {
    const states = automatonOf(pattern);
    if (states.length === 0) return NOTHING;
    const names = states.map(() => this.name());
    const classes = states.map((state, at) => {
      const moves = state.moves.map(([set, next]) => ({ ...this.set(set, notation), next: names[next]! }));
      const options = moves.map(({ text, next }) => this.rule(`${EMPTY} ${text} ${next}`));
      this.define(names[at]!, [...(state.accepts ? [EMPTY] : []), ...options].join(" | "));
      return moves.reduce((sum, own) => sum + own.classes, 0);
    });
    const sum = classes.reduce((all, own) => all + own, 0);
    return checked({ text: names[0]!, classes: sum, times: longest(states) });
  }

  private set(set: CodePoints, notation: Notation): WrittenSet {
    const known = this.sets[notation].get(set);
    if (known) return known;
    const isJSON = notation === "json";
    const branches = isJSON ? [...byteBranches(difference(set, ESCAPED)), ...escapes(set)] : byteBranches(set);
    const { text, classes } = writeBranches(branches);
    const own = { text: classes === 1 ? text : this.rule(text), classes, inline: inlineOf(branches) };
    this.sets[notation].set(set, own);
    return own;
  }

  private sequence(parts: readonly Pattern[], notation: Notation): Written {
    const written = parts.map((own) => this.write(own, notation));
    if (written.some((own) => own.isNothing)) return NOTHING;
    return checked({
      text: written.map(({ text }) => text).join(" ") || '""',
      classes: written.reduce((sum, { classes }) => sum + classes, 0),
      times: written.reduce((sum, { times }) => sum + times, 0),
    });
  }

  private choice(options: readonly Pattern[], notation: Notation): Written {
    const written = options.map((own) => this.write(own, notation)).filter((own) => !own.isNothing);
    if (written.length === 0) return NOTHING;
    return checked({
      text: this.rule(written.map(({ text }) => this.rule(`${EMPTY} ${text}`)).join(" | ")),
      classes: written.reduce((sum, { classes }) => sum + classes, 0),
      times: written.reduce((most, { times }) => Math.max(most, times), 0),
    });
  }

  private repeat({ part, least, most }: Pattern & { readonly kind: "repeat" }, notation: Notation): Written {
    const { text, classes, times, inline, isNothing } = this.write(part, notation);
    if (isNothing) return least > 0 ? NOTHING : { text: EMPTY, classes: 0, times: 0 };
    const count = Number.isFinite(most) ? most : Math.max(1, least);
    const own = checked({ text: "", classes: classes * Math.min(UNROLLED, count), times: times * count });
    const long = count > MOST_COPIES && part.kind === "set" ? longOf(part.set, notation) : undefined;
    if (count > MOST_COPIES && part.kind === "set" && classes > 1 && !long && inline)
      return { ...own, text: this.blocks(inline, least, most) };
    const repeated = classes === 1 ? text : (long ?? inline ?? this.rule(`${EMPTY} ${text}`));
    // XGrammar 0.1.27 loses the shorter texts of {1,129}, which are too many for copies from the first on.
    if (least === 0 || most <= COUNTED || most === least)
      return { ...own, text: `${repeated}{${least},${endOf(most)}}` };
    return { ...own, text: `${repeated}{${least}} ${repeated}{0,${endOf(most - least)}}` };
  }

  /** Many times a character, in blocks that share one rule: the tokens of each place in it are found once. */
  private blocks(character: string, least: number, most: number): string {
    const block = this.rule(`${EMPTY} ${character}{${BLOCK}}`);
    const times = (text: string, count: number) => (count > 0 ? [`${text}{${count}}`] : []);
    const exactly = [...times(block, Math.floor(least / BLOCK)), ...times(character, least % BLOCK)];
    if (most === least) return exactly.join(" ");
    if (most === Infinity) return [...exactly, `${character}{0,}`].join(" ");
    const part = this.rule(`${EMPTY} ${character}{0,${BLOCK - 1}}`);
    const rest = most - least;
    let next = this.rule(`${EMPTY} ${character}{0,${rest % BLOCK}}`);
    for (let left = Math.floor(rest / BLOCK); left > 0; left--)
      next = this.rule(`${part} | ${this.rule(`${EMPTY} ${block} ${next}`)}`);
    return [...exactly, next].join(" ");
  }
}

const endOf = (most: number): number | "" => (Number.isFinite(most) ? most : "");

const invalid = (code: string, message: string) => new ArgumentError("compileConstraint", code, message);

/** The longest text on a way through the states that passes none twice: each is a character away from the last. */
const longest = (states: readonly State[]): number => states.length - 1;

function checked(written: Written): Written {
  checkSize(written.classes);
  if (written.times <= MOST_TIMES) return written;
  throw invalid("tooLarge", `expected repeats of at most ${MOST_TIMES} characters in all, got ${written.times}`);
}

function checkSize(classes: number): void {
  if (classes <= MOST_CLASSES) return;
  const message = `expected expressions of at most ${MOST_CLASSES} classes of bytes, repeats multiplied`;
  throw invalid("tooLarge", `${message}, got ${classes}; shorten the repeats`);
}

function writeBranches(branches: readonly ByteBranch[]): WrittenSet {
  const options = branches.map(({ bytes, next }) => {
    if (next.length === 0) return { text: classOf(bytes), classes: 1 };
    const rest = writeBranches(next);
    return { text: `${classOf(bytes)} ${next.length > 1 ? `(${rest.text})` : rest.text}`, classes: 1 + rest.classes };
  });
  const classes = options.reduce((sum, own) => sum + own.classes, 0);
  return { text: options.map((own) => own.text).join(" | "), classes };
}

/** Copies of a character in a repeat. Each takes some 40 ms for a vocabulary of 100,000 tokens, once. */
const MOST_COPIES = 64;
/** Copies in a block. Tokens that lead over its end are found with each token, in some 20 ms. */
const BLOCK = 32;

/**
 * A character of many, of which all beyond ASCII are in the set, as XGrammar's own class, which takes a fifth of the
 * time. What JSON escapes does not follow then. (Bytes that are in no UTF-8 could; only tokens of single bytes have
 * them.)
 */
function longOf(set: CodePoints, notation: Notation): string | undefined {
  const without = notation === "json" ? union(complement(set), ESCAPED) : complement(set);
  const last = without.at(-1)?.[1];
  if (last === undefined || last > 0x7f) return undefined;
  return `[^${without.map(([first, end]) => `${hex(first)}-${hex(end)}`).join("")}]`;
}

/** Alternatives that have none within them, if these are not too many. */
const MOST_INLINE = 40;
function inlineOf(branches: readonly ByteBranch[]): string | undefined {
  const flat = flatten(branches);
  return flat.length <= MOST_INLINE ? `(${flat.join(" | ")})` : undefined;
}

const flatten = (branches: readonly ByteBranch[]): string[] =>
  branches.flatMap(({ bytes, next }) =>
    next.length === 0 ? [classOf(bytes)] : flatten(next).map((rest) => `${classOf(bytes)} ${rest}`),
  );

function classOf(bytes: readonly Range[]): string {
  const parts = bytes.map(([first, last]) => (first === last ? hex(first) : `${hex(first)}-${hex(last)}`));
  const isLone = bytes.length === 1 && bytes[0]![0] === bytes[0]![1];
  return `[${isLone ? parts[0]! + parts[0]! : parts.join("")}]`;
}

const hex = (byte: number): string => `\\x${byte.toString(16).padStart(2, "0")}`;

/** What has to be escaped in texts of JSON. */
const ESCAPED = union(rangeOf(0, 0x1f), rangeOf(0x22), rangeOf(0x5c));
/** Of these the ones with a letter of their own, and their escapes. */
const SHORT: ReadonlyMap<number, string> = new Map(
  ["\b", "\f", "\n", "\r", "\t", '"', "\\"].map((own) => [own.charCodeAt(0), JSON.stringify(own)[2]!]),
);

const lone = (text: string, next: readonly ByteBranch[]): ByteBranch =>
  [...text].reduceRight<readonly ByteBranch[]>(
    (rest, own) => [{ bytes: [[own.charCodeAt(0), own.charCodeAt(0)]], next: rest }],
    next,
  )[0]!;

/** The characters of a set that have to be escaped: `\n`, or `\u001f`. */
function escapes(set: CodePoints): ByteBranch[] {
  const points = intersection(set, ESCAPED).flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, at) => first + at),
  );
  const short = points
    .flatMap((point) => SHORT.get(point) ?? [])
    .map((own): Range => [own.charCodeAt(0), own.charCodeAt(0)]);
  const long = points.filter((point) => !SHORT.has(point));
  const next: ByteBranch[] = short.length > 0 ? [{ bytes: short.sort(([a], [b]) => a - b), next: [] }] : [];
  const digits = ["0", "1"].flatMap((high) => {
    const bytes = long
      .filter((point) => point >> 4 === Number(high))
      .map((point): Range => {
        const digit = (point & 15).toString(16).charCodeAt(0);
        return [digit, digit];
      });
    return bytes.length > 0 ? [lone(high, [{ bytes, next: [] }])] : [];
  });
  if (digits.length > 0) next.push(lone("u00", digits));
  return next.length > 0 ? [lone("\\", next)] : [];
}
