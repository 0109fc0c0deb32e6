/** Reads JavaScript's regular expressions with the flag `u`. */
import { type AST, RegExpParser, RegExpSyntaxError } from "@eslint-community/regexpp";
import { ArgumentError } from "../../core/errors.ts";
import { type CodePoints, charactersOf, complement, rangeOf, union } from "./code_points.ts";
import { choice, empty, type Pattern, repeat, sequence, setOf } from "./pattern.ts";

/** More parentheses in each other would exhaust the stack of whoever reads them. */
const MOST_DEPTH = 64;

const invalid = (code: string, message: string, options?: ErrorOptions) =>
  new ArgumentError("compileConstraint", code, message, options);

/**
 * The texts that match an expression as a whole.
 *
 * @throws {ArgumentError} `notARegex`; `tooLarge` for more than 64 groups in each other; `unsupported`, with its name,
 * for what is no matter of the characters alone: lookarounds, references to groups, word boundaries, flags of groups,
 * and `^` and `$` elsewhere than at the ends.
 */
export function readPattern(source: string): Pattern {
  checkDepth(source);
  let parsed: AST.Pattern;
  try {
    parsed = new RegExpParser().parsePattern(source, 0, source.length, { unicode: true });
  } catch (cause) {
    if (!(cause instanceof RegExpSyntaxError)) throw cause;
    throw invalid("notARegex", `expected a regular expression with the flag u: ${cause.message}`, { cause });
  }
  return choice(parsed.alternatives.map((own) => alternative(own, true, true)));
}

/** Parentheses in classes count too: fewer are allowed then. */
function checkDepth(source: string): void {
  let depth = 0;
  for (const [found] of source.matchAll(/\\.|[()]/gsu)) {
    if (found === "(") depth++;
    if (found === ")") depth = Math.max(0, depth - 1);
    if (depth > MOST_DEPTH) throw invalid("tooLarge", `expected at most ${MOST_DEPTH} groups in each other`);
  }
}

/** @param isFirst whether nothing comes before it @param isLast whether nothing comes after it */
function alternative({ elements }: AST.Alternative, isFirst: boolean, isLast: boolean): Pattern {
  const isAnchor = (own: AST.Element) => own.type === "Assertion" && (own.kind === "start" || own.kind === "end");
  const [from, to] = [elements.findIndex((own) => !isAnchor(own)), elements.findLastIndex((own) => !isAnchor(own))];
  return sequence(
    elements.map((own, at) => element(own, isFirst && (from < 0 || at <= from), isLast && (to < 0 || at >= to))),
  );
}

function element(own: AST.Element, isFirst: boolean, isLast: boolean): Pattern {
  switch (own.type) {
    case "Assertion":
      if ((own.kind === "start" && isFirst) || (own.kind === "end" && isLast)) return empty;
      throw unsupported(own.kind === "start" || own.kind === "end" ? `${own.raw} there` : own.raw);
    case "Quantifier":
      return repeat(element(own.element, false, false), own.min, own.max);
    case "Group":
      if (own.modifiers) throw unsupported(own.modifiers.raw);
      return choice(own.alternatives.map((each) => alternative(each, isFirst, isLast)));
    case "CapturingGroup":
      return choice(own.alternatives.map((each) => alternative(each, isFirst, isLast)));
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
  invalid("unsupported", `expected a regular expression without ${raw.slice(0, 100)}: texts can't be held to it`);

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
