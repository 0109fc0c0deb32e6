/** Parses JavaScript's regular expressions with the flag `u`. */
import { type AST, RegExpParser, RegExpSyntaxError } from "@eslint-community/regexpp";
import { ArgumentError } from "../../core/errors.ts";
import { type CodePoints, charactersOf, complement, intersection, rangeOf, union } from "./code_points.ts";
import { anyText, both, choice, empty, not, type Pattern, repeat, sequence, setOf } from "./pattern.ts";

/** Deeper nesting of parentheses would overflow the stack of readers. */
const MOST_DEPTH = 64;
/** Maximum copies of a group with lookaheads. */
const MOST_COPIES = 8;

const invalid = (code: string, message: string, options?: ErrorOptions) =>
  new ArgumentError("compileConstraint", code, message, options);

/**
 * Returns the pattern of the texts that match an expression.
 *
 * @param extent `"whole"` if the whole text must match; `"part"` if a part of it must, as in `RegExp.test`
 * @throws {ArgumentError} `notARegex` for one that is invalid with and without the flag `u`; `tooLarge` for over 64
 * nested groups; `unsupported`, with the element, for lookbehinds, references to groups, word boundaries, flags of
 * groups, `^` and `$` other than at the ends, and lookaheads in repeated groups.
 */
export function readPattern(source: string, extent: "whole" | "part"): Pattern {
  checkDepth(source);
  const margin = extent === "whole" ? empty : anyText;
  const read = ({ alternatives: all }: AST.Pattern) =>
    alternatives(all, { before: margin, after: margin, rest: empty });
  try {
    return read(parsed(source, true));
  } catch (cause) {
    if (!(cause instanceof RegExpSyntaxError)) throw cause;
    const legacy = legacyOf(source);
    if (legacy) return withinPlane(read(legacy));
    throw invalid("notARegex", `expected a regular expression with the flag u: ${cause.message}`, { cause });
  }
}

const parsed = (source: string, unicode: boolean): AST.Pattern =>
  new RegExpParser().parsePattern(source, 0, source.length, { unicode });

/** Parses an expression that is valid only without the flag `u`, such as zod's `rfc5322Email` with an unescaped `]`. */
function legacyOf(source: string): AST.Pattern | undefined {
  try {
    return parsed(source, false);
  } catch {
    return undefined;
  }
}

const PLANE = rangeOf(0, 0xffff);

/** Without the flag, a set matches a unit of UTF-16, of which characters beyond U+FFFF have two: they are left out. */
function withinPlane(pattern: Pattern): Pattern {
  if (pattern === anyText) return pattern;
  switch (pattern.kind) {
    case "set":
      return setOf(intersection(pattern.set, PLANE));
    case "sequence":
      return sequence(pattern.parts.map(withinPlane));
    case "choice":
      return choice(pattern.options.map(withinPlane));
    case "repeat":
      return repeat(withinPlane(pattern.part), pattern.least, pattern.most);
    case "both":
      return both(pattern.parts.map(withinPlane));
    case "not":
      throw unsupported("(?!…), unless it is valid with the flag u");
    default:
      return pattern;
  }
}

/** Checks the depth. Parentheses in classes are counted too, so the check may be too strict. */
function checkDepth(source: string): void {
  let depth = 0;
  for (const [found] of source.matchAll(/\\.|[()]/gsu)) {
    if (found === "(") depth++;
    if (found === ")") depth = Math.max(0, depth - 1);
    if (depth > MOST_DEPTH) throw invalid("tooLarge", `expected at most ${MOST_DEPTH} nested groups`);
  }
}

/** The context of a part of an expression. */
interface Place {
  /** The text before it unless there is a `^`; undefined if another part precedes it. */
  readonly before: Pattern | undefined;
  /** The text after it unless there is a `$`; undefined if another part follows it. */
  readonly after: Pattern | undefined;
  /** The pattern that follows it, to the end of the text. */
  readonly rest: Pattern;
}

const alternatives = (all: readonly AST.Alternative[], place: Place): Pattern =>
  choice(all.map((own) => alternative(own, place)));

const isStart = (own: AST.Element): boolean => own.type === "Assertion" && own.kind === "start";
const isEnd = (own: AST.Element): boolean => own.type === "Assertion" && own.kind === "end";
const isGroup = (own: AST.Element | undefined): boolean => own?.type === "Group" || own?.type === "CapturingGroup";

/** Reads an alternative together with the rest, since lookaheads constrain both. */
function alternative({ elements }: AST.Alternative, { before, after, rest }: Place): Pattern {
  let [from, to] = [0, elements.length];
  let [prefix, suffix] = [before ?? empty, after ?? empty];
  for (; before && from < to && isStart(elements[from]!); from++) prefix = empty;
  for (; after && from < to && isEnd(elements[to - 1]!); to--) suffix = empty;
  const inner = elements.slice(from, to);
  // A group at an end has the anchors of its alternatives.
  const opens = before && from === 0 && isGroup(inner[0]);
  const closes = after && to === elements.length && isGroup(inner.at(-1));
  if (inner.length === 0 && prefix === anyText) suffix = empty;
  const tail = closes ? rest : sequence([suffix, rest]);
  const own = inner.reduceRight((next, each, at) => {
    const isFirst = at === 0 && opens;
    const isLast = at === inner.length - 1 && closes;
    return element(each, { before: isFirst ? before : undefined, after: isLast ? after : undefined, rest: next });
  }, tail);
  return opens ? own : sequence([prefix, own]);
}

function element(own: AST.Element, place: Place): Pattern {
  if (own.type === "Assertion" && own.kind === "lookahead") {
    const ahead = alternatives(own.alternatives, { before: undefined, after: anyText, rest: empty });
    return both([place.rest, own.negate ? not(ahead) : ahead]);
  }
  if ((own.type === "Group" && !own.modifiers) || own.type === "CapturingGroup")
    if (place.before ?? place.after ?? looksAhead(own)) return alternatives(own.alternatives, place);
  if (own.type === "Quantifier" && looksAhead(own.element)) return copies(own, place.rest);
  return sequence([alone(own), place.rest]);
}

/** Reads a repeat with lookaheads by copying its part. */
function copies({ element: part, min, max, raw }: AST.Quantifier, rest: Pattern): Pattern {
  if (max > MOST_COPIES) throw unsupported(raw);
  let own = rest;
  for (let count = max; count > 0; count--) {
    const next = element(part, { before: undefined, after: undefined, rest: own });
    own = count > min ? choice([rest, next]) : next;
  }
  return own;
}

function looksAhead(own: AST.Element): boolean {
  if (own.type === "Assertion") return own.kind === "lookahead";
  if (own.type === "Quantifier") return looksAhead(own.element);
  if (own.type !== "Group" && own.type !== "CapturingGroup") return false;
  return own.alternatives.some(({ elements }) => elements.some(looksAhead));
}

/** Reads an element that is independent of its context. */
function alone(own: AST.Element): Pattern {
  const inside: Place = { before: undefined, after: undefined, rest: empty };
  switch (own.type) {
    case "Assertion":
      throw unsupported(own.kind === "start" || own.kind === "end" ? `${own.raw} away from the ends` : own.raw);
    case "Quantifier":
      return repeat(alone(own.element), own.min, own.max);
    case "Group":
      if (own.modifiers) throw unsupported(own.modifiers.raw);
      return alternatives(own.alternatives, inside);
    case "CapturingGroup":
      return alternatives(own.alternatives, inside);
    case "Character":
      return setOf(rangeOf(own.value));
    case "CharacterSet":
      return setOf(charactersOf(own.raw));
    case "CharacterClass":
      return setOf(classOf(own));
    default:
      throw unsupported(own.raw);
  }
}

const unsupported = (raw: string): ArgumentError =>
  invalid("unsupported", `expected a regular expression without ${raw.slice(0, 100)}, which is not supported`);

function classOf({ elements, negate }: AST.CharacterClass): CodePoints {
  const set = union(
    ...elements.map((own) => {
      if (own.type === "Character") return rangeOf(own.value);
      if (own.type === "CharacterClassRange") return rangeOf(own.min.value, own.max.value);
      return charactersOf(own.raw);
    }),
  );
  return negate ? complement(set) : set;
}
