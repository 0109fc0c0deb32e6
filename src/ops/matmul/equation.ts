/** Parser for equations of `einsum`: the labels of each operand's axes and of the result's. */
import { getOrMake } from "../../core/collections.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/**
 * The axis's letter. Axes of an ellipsis have the labels `...1` (the last axis), `...2` (the one before it), and so on.
 */
export type Label = string;

export interface Equation {
  /** For each operand, the labels of its axes. */
  readonly operands: readonly (readonly Label[])[];
  readonly output: readonly Label[];
}

/** One part of an equation, between commas and the arrow: letters and at most one ellipsis. */
interface Term {
  readonly text: string;
  readonly before: readonly string[];
  readonly hasEllipsis: boolean;
  readonly after: readonly string[];
}

const MOST_PARSED = 256;
/** Parsed equations by text and ranks: parsing takes longer than a small product. */
const parsed = new Map<string, Equation>();

/**
 * Parses an equation such as `"bij,bjk->bik"`. Spaces are ignored. Without an arrow, the result has the ellipsis and
 * then the letters that occur once, in alphabetical order, capitals first.
 *
 * @throws {ArgumentError} for an invalid equation, or a number of operands that differs from it.
 * @throws {ShapeError} if a rank differs from the number of letters.
 */
export function parseEquation(equation: string, operands: readonly Tensor[]): Equation {
  if (parsed.size > MOST_PARSED) parsed.clear();
  return getOrMake(parsed, `${equation} ${operands.map(({ rank }) => rank).join(" ")}`, () =>
    parse(equation, operands),
  );
}

function parse(equation: string, operands: readonly Tensor[]): Equation {
  const text = equation.replaceAll(" ", "");
  const [left, right, ...more] = text.split("->");
  if (more.length > 0) fail(equation, "it has more than one ->");
  const terms = left.split(",").map((part) => parseTerm(equation, part));
  if (terms.length !== operands.length)
    fail(equation, `it names ${terms.length} operands, got ${operands.length}`, "wrongOperandCount");
  const spans = terms.map((term, index) => ellipsisSpan(equation, term, index, operands[index]));
  const widest = Math.max(...spans);
  const labels = terms.map((term, index) => labelsOf(term, spans[index]));
  const output =
    right === undefined ? impliedOutput(labels, widest) : labelsOf(checkedOutput(equation, right, labels), widest);
  return { operands: labels, output };
}

function parseTerm(equation: string, text: string): Term {
  const match = /^([A-Za-z]*)(\.\.\.)?([A-Za-z]*)$/.exec(text);
  if (match === null) {
    const strange = text.replaceAll("...", "").replaceAll(/[A-Za-z]/g, "")[0];
    fail(
      equation,
      strange === undefined
        ? `"${text}" has two ellipses`
        : `"${text}" has "${strange}"; letters and one "..." are allowed`,
    );
  }
  const [, before = "", dots, after = ""] = match;
  return { text, before: [...before], hasEllipsis: dots !== undefined, after: [...after] };
}

/** The number of axes that the ellipsis stands for; 0 if there is no ellipsis. */
function ellipsisSpan(
  equation: string,
  { text, before, hasEllipsis, after }: Term,
  index: number,
  operand: Tensor,
): number {
  const span = operand.rank - before.length - after.length;
  if (span === 0 || (hasEllipsis && span > 0)) return span;
  throw new ShapeError(
    "einsum",
    "wrongRank",
    `"${equation}" gives operand ${index} ${before.length + after.length} letters ("${text}"), but ` +
      `${operand.describe()} has ${operand.rank} axes${hasEllipsis ? "" : '; "..." stands for further axes'}`,
  );
}

const labelsOf = ({ before, hasEllipsis, after }: Term, span: number): Label[] => [
  ...before,
  ...(hasEllipsis ? ellipsisLabels(span) : []),
  ...after,
];

const ellipsisLabels = (span: number): Label[] => Array.from({ length: span }, (_, index) => `...${span - index}`);

function impliedOutput(operands: readonly (readonly Label[])[], widest: number): Label[] {
  const letters = operands.flat().filter((label) => label.length === 1);
  const once = letters.filter((letter) => letters.indexOf(letter) === letters.lastIndexOf(letter));
  return [...ellipsisLabels(widest), ...once.sort()];
}

function checkedOutput(equation: string, text: string, operands: readonly (readonly Label[])[]): Term {
  const term = parseTerm(equation, text);
  const known = new Set(operands.flat());
  const letters = [...term.before, ...term.after];
  for (const [index, letter] of letters.entries()) {
    if (!known.has(letter)) fail(equation, `the result has "${letter}", which no operand has`);
    if (letters.indexOf(letter) !== index) fail(equation, `the result has "${letter}" twice`);
  }
  return term;
}

function fail(equation: string, why: string, code = "invalidEquation"): never {
  throw new ArgumentError("einsum", code, `"${equation}" can't be read: ${why}`);
}
