/** Prints tensors: shape, dtype and elements. */
import { type Complex, type DType, isFloat, realDType } from "./dtype.ts";
import { elementAt } from "./elements.ts";
import type { Tensor } from "./tensor.ts";

const EDGE = 3;
const CUT_ABOVE = 1000;
const LINE = 80;

/**
 * Formats a tensor as `Tensor float32[2, 2]` and its elements. In tensors with over 1,000 elements, long axes show
 * their first and last three indices, and only shown elements are read. Rows wrap at 80 columns.
 */
export function formatTensor(tensor: Tensor): string {
  const grad = tensor.requiresGrad ? ", requires grad" : "";
  const head = `Tensor ${tensor.describe()}${grad}`;
  if (tensor.storage.isClosed) return `${head} (${tensor.storage.closing.summary})`;
  if (tensor.size === 0) return head;
  const kept = tensor.shape.map((size) => keptIndices(size, tensor.size > CUT_ABOVE));
  const texts: string[] = [];
  visit(tensor.shape, kept, (at) => texts.push(formatElement(elementAt(tensor, at), tensor.dtype)));
  return `${head}\n${table(kept, texts)}`;
}

/** Formats elements of equal width in nested brackets. */
function table(kept: readonly (readonly number[])[], texts: readonly string[]): string {
  const width = Math.max(...texts.map((text) => text.length));
  const rank = kept.length;
  let next = 0;
  const level = (axis: number): string => {
    if (axis === rank) return texts[next++].padStart(width);
    const items = kept[axis].map((index) => (index === CUT ? "…" : level(axis + 1)));
    const indent = `\n${" ".repeat(axis + 1)}`;
    const lines = axis === rank - 1 ? wrapped(items, LINE - rank, width) : items;
    return `[${lines.join(`,${indent}`)}]`;
  };
  return level(0);
}

/** Wraps the items of a row into lines of at most `columns` columns. */
function wrapped(items: readonly string[], columns: number, width: number): string[] {
  const each = Math.max(1, Math.floor(columns / (width + 2)));
  const lines = Math.ceil(items.length / each);
  return Array.from({ length: lines }, (_, line) => items.slice(line * each, (line + 1) * each).join(", "));
}

/** Marks omitted indices. */
const CUT = -1;

/** Returns the indices of an axis to show. */
function keptIndices(size: number, cut: boolean): number[] {
  if (!cut || size <= 2 * EDGE) return Array.from({ length: size }, (_, index) => index);
  const edge = [...new Array(EDGE).keys()];
  return [...edge, CUT, ...edge.map((index) => size - EDGE + index)];
}

/** Calls `body` with the row-major index of each shown element, in order. */
function visit(
  shape: readonly number[],
  kept: readonly number[][],
  body: (at: number) => void,
  axis = 0,
  at = 0,
): void {
  const size = shape[axis];
  if (size === undefined) {
    body(at);
    return;
  }
  for (const index of kept[axis]) if (index !== CUT) visit(shape, kept, body, axis + 1, at * size + index);
}

function formatElement(value: number | bigint | Complex, dtype: DType): string {
  if (typeof value === "object") return formatComplex(value, dtype);
  if (dtype === "bool") return value ? "true" : "false";
  if (typeof value === "bigint" || !isFloat(dtype)) return String(value);
  const magnitude = Math.abs(value);
  if (Number.isInteger(value) && magnitude < 1e6) return Object.is(value, -0) ? "-0" : String(value);
  const rounded = Number(value.toPrecision(dtype === "float64" ? 8 : 5));
  return Number.isFinite(value) && (magnitude >= 1e6 || magnitude < 1e-4) ? rounded.toExponential() : String(rounded);
}

/** Formats a complex number as `1+2i`. A NaN of the imaginary part has no sign: `1+NaNi`. */
function formatComplex({ re, im }: Complex, dtype: DType): string {
  const [real, imaginary] = [re, im].map((part) => formatElement(part, realDType(dtype)));
  return `${real}${imaginary.startsWith("-") ? "" : "+"}${imaginary}i`;
}
