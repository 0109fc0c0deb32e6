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

/** Without the flag, a set matches a unit of UTF-16. Characters beyond U+FFFF have two units, so they are left out. */
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
  /** The text that may precede the part unless it begins with `^`; undefined if another part precedes it. */
  readonly before: Pattern | undefined;
  /** The text that may follow the part unless it ends with `$`; undefined if another part follows it. */
  readonly after: Pattern | undefined;
  /** The pattern from the part to the end of the text. */
  readonly rest: Pattern;
}

const alternatives = (all: readonly AST.Alternative[], place: Place): Pattern =>
  choice(all.map((each) => alternative(each, place)));

const isStart = (node: AST.Element): boolean => node.type === "Assertion" && node.kind === "start";
const isEnd = (node: AST.Element): boolean => node.type === "Assertion" && node.kind === "end";
const isGroup = (node: AST.Element | undefined): boolean => node?.type === "Group" || node?.type === "CapturingGroup";

/** Reads an alternative together with the rest, since lookaheads constrain both. */
function alternative({ elements }: AST.Alternative, { before, after, rest }: Place): Pattern {
  let [from, to] = [0, elements.length];
  let [prefix, suffix] = [before ?? empty, after ?? empty];
  for (; before && from < to && isStart(elements[from]); from++) prefix = empty;
  for (; after && from < to && isEnd(elements[to - 1]); to--) suffix = empty;
  const inner = elements.slice(from, to);
  // A group at an end has the anchors of its alternatives.
  const opens = before && from === 0 && isGroup(inner[0]);
  const closes = after && to === elements.length && isGroup(inner.at(-1));
  if (inner.length === 0 && prefix === anyText) suffix = empty;
  const tail = closes ? rest : sequence([suffix, rest]);
  const pattern = inner.reduceRight((next, each, at) => {
    const isFirst = at === 0 && opens;
    const isLast = at === inner.length - 1 && closes;
    return element(each, { before: isFirst ? before : undefined, after: isLast ? after : undefined, rest: next });
  }, tail);
  return opens ? pattern : sequence([prefix, pattern]);
}

function element(node: AST.Element, place: Place): Pattern {
  if (node.type === "Assertion" && node.kind === "lookahead") {
    const ahead = alternatives(node.alternatives, { before: undefined, after: anyText, rest: empty });
    return both([place.rest, node.negate ? not(ahead) : ahead]);
  }
  if ((node.type === "Group" && !node.modifiers) || node.type === "CapturingGroup")
    if (place.before ?? place.after ?? looksAhead(node)) return alternatives(node.alternatives, place);
  if (node.type === "Quantifier" && looksAhead(node.element)) return copies(node, place.rest);
  return sequence([alone(node), place.rest]);
}

/** Reads a repeat with lookaheads by copying its part. */
function copies({ element: part, min, max, raw }: AST.Quantifier, rest: Pattern): Pattern {
  if (max > MOST_COPIES) throw unsupported(raw);
  let pattern = rest;
  for (let count = max; count > 0; count--) {
    const next = element(part, { before: undefined, after: undefined, rest: pattern });
    pattern = count > min ? choice([rest, next]) : next;
  }
  return pattern;
}

function looksAhead(node: AST.Element): boolean {
  if (node.type === "Assertion") return node.kind === "lookahead";
  if (node.type === "Quantifier") return looksAhead(node.element);
  if (node.type !== "Group" && node.type !== "CapturingGroup") return false;
  return node.alternatives.some(({ elements }) => elements.some(looksAhead));
}

/** Reads an element that is independent of its context. */
function alone(node: AST.Element): Pattern {
  const inside: Place = { before: undefined, after: undefined, rest: empty };
  switch (node.type) {
    case "Assertion":
      throw unsupported(node.kind === "start" || node.kind === "end" ? `${node.raw} away from the ends` : node.raw);
    case "Quantifier":
      return repeat(alone(node.element), node.min, node.max);
    case "Group":
      if (node.modifiers) throw unsupported(node.modifiers.raw);
      return alternatives(node.alternatives, inside);
    case "CapturingGroup":
      return alternatives(node.alternatives, inside);
    case "Character":
      return setOf(rangeOf(node.value));
    case "CharacterSet":
      return setOf(charactersOf(node.raw));
    case "CharacterClass":
      return setOf(classOf(node));
    default:
      throw unsupported(node.raw);
  }
}

const unsupported = (raw: string): ArgumentError =>
  invalid("unsupported", `expected a regular expression without ${raw.slice(0, 100)}, which is not supported`);

function classOf({ elements, negate }: AST.CharacterClass): CodePoints {
  const set = union(
    ...elements.map((member) => {
      if (member.type === "Character") return rangeOf(member.value);
      if (member.type === "CharacterClassRange") return rangeOf(member.min.value, member.max.value);
      return charactersOf(member.raw);
    }),
  );
  return negate ? complement(set) : set;
}
