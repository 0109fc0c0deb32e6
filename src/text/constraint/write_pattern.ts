/**
 * Writes patterns as rules in XGrammar's notation, a variant of EBNF.
 *
 * Its classes contain bytes if they have more than one element, but a single character is written in UTF-8. So each
 * byte is written as a class, with a single byte repeated. XGrammar inlines a rule without references at the start of a
 * choice, and may wrongly merge states of choices with a common prefix (its issue 618, in 0.1.27). So options and
 * repeated parts are separate rules with a reference.
 */
import { ArgumentError } from "../../core/errors.ts";
import { automatonOf, type State } from "./automaton.ts";
import { type CodePoints, complement, difference, intersection, type Range, rangeOf, union } from "./code_points.ts";
import { isNothing, type Pattern } from "./pattern.ts";
import { type ByteBranch, byteBranches } from "./utf8.ts";

/** How characters are written: plain, or escaped as in JSON strings. */
export type Notation = "plain" | "json";

/** Maximum size of the automaton in byte classes. Each takes about a millisecond for a vocabulary of 100,000 tokens. */
const MOST_CLASSES = 20_000;
/** Maximum length of a text, not counting an unlimited end. */
const MOST_TIMES = 10_000;
/** XGrammar counts longer repeats instead of adding states. */
const UNROLLED = 256;
const COUNTED = 128;

/** A written expression with the size of its automaton. */
interface Written {
  readonly text: string;
  readonly classes: number;
  /** Maximum number of characters, with unlimited repeats counted once. */
  readonly times: number;
  /** For a character: all its bytes in one expression, which lets XGrammar precompute tokens of several characters. */
  readonly inline?: string | undefined;
  /** Whether no text matches. */
  readonly isNothing?: boolean;
}

/** A written character. */
type WrittenSet = Omit<Written, "times">;

const EMPTY = "held_empty";
const NOTHING: Written = { text: EMPTY, classes: 0, times: 0, isNothing: true };

/** The rules of a grammar. */
export class PatternRules {
  private readonly bodies: string[] = [];
  private readonly sets = { plain: new Map<CodePoints, WrittenSet>(), json: new Map<CodePoints, WrittenSet>() };
  private names = 0;
  private classes = 0;

  /** All rules, one per line. */
  get text(): string {
    return [`${EMPTY} ::= ""`, ...this.bodies].join("\n");
  }

  /**
   * Adds a rule for a pattern and returns its name; undefined if no text matches.
   *
   * @throws {ArgumentError} `tooLarge`
   */
  add(pattern: Pattern, notation: Notation): string | undefined {
    return isNothing(pattern) ? undefined : this.named(this.write(pattern, notation));
  }

  /** Like {@link add}, but writes the pattern as a deterministic automaton. */
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

  /** Writes a rule for each state. */
  private automaton(pattern: Pattern, notation: Notation): Written {
    const states = automatonOf(pattern);
    if (states.length === 0) return NOTHING;
    const names = states.map(() => this.name());
    const classes = states.map((state, at) => {
      const moves = state.moves.map(([set, next]) => ({ ...this.set(set, notation), next: names[next] }));
      const options = moves.map(({ text, next }) => this.rule(`${EMPTY} ${text} ${next}`));
      this.define(names[at], [...(state.accepts ? [EMPTY] : []), ...options].join(" | "));
      return moves.reduce((sum, branch) => sum + branch.classes, 0);
    });
    const sum = classes.reduce((all, count) => all + count, 0);
    return checked({ text: names[0], classes: sum, times: longest(states) });
  }

  private set(set: CodePoints, notation: Notation): WrittenSet {
    const known = this.sets[notation].get(set);
    if (known) return known;
    const isJSON = notation === "json";
    const branches = isJSON ? [...byteBranches(difference(set, ESCAPED)), ...escapes(set)] : byteBranches(set);
    const { text, classes } = writeBranches(branches);
    const written = { text: classes === 1 ? text : this.rule(text), classes, inline: inlineOf(branches) };
    this.sets[notation].set(set, written);
    return written;
  }

  private sequence(parts: readonly Pattern[], notation: Notation): Written {
    const written = parts.map((part) => this.write(part, notation));
    if (written.some((result) => result.isNothing)) return NOTHING;
    return checked({
      text: written.map(({ text }) => text).join(" ") || '""',
      classes: written.reduce((sum, { classes }) => sum + classes, 0),
      times: written.reduce((sum, { times }) => sum + times, 0),
    });
  }

  private choice(options: readonly Pattern[], notation: Notation): Written {
    const written = options.map((option) => this.write(option, notation)).filter((result) => !result.isNothing);
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
    const result = checked({ text: "", classes: classes * Math.min(UNROLLED, count), times: times * count });
    const long = count > MOST_COPIES && part.kind === "set" ? longOf(part.set, notation) : undefined;
    if (count > MOST_COPIES && part.kind === "set" && classes > 1 && !long && inline)
      return { ...result, text: this.blocks(inline, least, most) };
    const repeated = classes === 1 ? text : (long ?? inline ?? this.rule(`${EMPTY} ${text}`));
    // XGrammar 0.1.27 loses the shorter texts of {1,129}, which is too long to unroll.
    if (least === 0 || most <= COUNTED || most === least)
      return { ...result, text: `${repeated}{${least},${endOf(most)}}` };
    return { ...result, text: `${repeated}{${least}} ${repeated}{0,${endOf(most - least)}}` };
  }

  /** Repeats a character in blocks that share one rule, so that the tokens at each position are found only once. */
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

/** Returns the length of the longest text that visits no state twice. */
const longest = (states: readonly State[]): number => states.length - 1;

function checked(written: Written): Written {
  checkSize(written.classes);
  if (written.times <= MOST_TIMES) return written;
  throw invalid("tooLarge", `expected repeats of at most ${MOST_TIMES} characters in total, got ${written.times}`);
}

function checkSize(classes: number): void {
  if (classes <= MOST_CLASSES) return;
  const message = `expected expressions of at most ${MOST_CLASSES} byte classes with repeats expanded`;
  throw invalid("tooLarge", `${message}, got ${classes}; shorten the repeats`);
}

function writeBranches(branches: readonly ByteBranch[]): WrittenSet {
  const options = branches.map(({ bytes, next }) => {
    if (next.length === 0) return { text: classOf(bytes), classes: 1 };
    const rest = writeBranches(next);
    return { text: `${classOf(bytes)} ${next.length > 1 ? `(${rest.text})` : rest.text}`, classes: 1 + rest.classes };
  });
  const classes = options.reduce((sum, branch) => sum + branch.classes, 0);
  return { text: options.map((branch) => branch.text).join(" | "), classes };
}

/** Copies of a character in a repeat. Each takes some 40 ms to compile for a vocabulary of 100,000 tokens. */
const MOST_COPIES = 64;
/** Copies in a block. Tokens across its end are found at generation time, in some 20 ms per token. */
const BLOCK = 32;

/**
 * Writes a set that contains all non-ASCII characters as XGrammar's built-in class, which takes a fifth of the time. It
 * then excludes characters that JSON escapes. (It allows invalid UTF-8 bytes, which only single-byte tokens have.)
 */
function longOf(set: CodePoints, notation: Notation): string | undefined {
  const without = notation === "json" ? union(complement(set), ESCAPED) : complement(set);
  const last = without.at(-1)?.[1];
  if (last === undefined || last > 0x7f) return undefined;
  return `[^${without.map(([first, end]) => `${hex(first)}-${hex(end)}`).join("")}]`;
}

/** Maximum number of flattened alternatives. */
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
  const isLone = bytes.length === 1 && bytes[0][0] === bytes[0][1];
  return `[${isLone ? parts[0] + parts[0] : parts.join("")}]`;
}

const hex = (byte: number): string => `\\x${byte.toString(16).padStart(2, "0")}`;

/** Characters that must be escaped in JSON strings. */
const ESCAPED = union(rangeOf(0, 0x1f), rangeOf(0x22), rangeOf(0x5c));
/** Characters that have a short escape, such as `\n`, with its letter. */
const SHORT: ReadonlyMap<number, string> = new Map(
  ["\b", "\f", "\n", "\r", "\t", '"', "\\"].map((character) => [character.charCodeAt(0), JSON.stringify(character)[2]]),
);

const lone = (text: string, next: readonly ByteBranch[]): ByteBranch =>
  [...text].reduceRight<readonly ByteBranch[]>(
    (rest, character) => [{ bytes: [[character.charCodeAt(0), character.charCodeAt(0)]], next: rest }],
    next,
  )[0];

/** Returns the characters of a set that must be escaped, such as `\n` or `\u001f`. */
function escapes(set: CodePoints): ByteBranch[] {
  const points = intersection(set, ESCAPED).flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, at) => first + at),
  );
  const short = points
    .flatMap((point) => SHORT.get(point) ?? [])
    .map((character): Range => [character.charCodeAt(0), character.charCodeAt(0)]);
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
