/** How tensors print: shape, dtype, and a table that shows the edges of what is long. */
import { isFloat } from "./dtype.ts";
import type { Tensor } from "./tensor.ts";

const EDGE = 3;
const CUT_ABOVE = 1000;

/** `Tensor float32[2, 2]` and its elements; axes of tensors with over 1,000 elements are cut to their first and last three. */
export function formatTensor(tensor: Tensor): string {
  const grad = tensor.requiresGrad ? ", requires grad" : "";
  const head = `Tensor ${tensor.describe()}${grad}`;
  if (tensor.size === 0) return head;
  const cut = tensor.size > CUT_ABOVE;
  const data = tensor.dataSync();
  const texts: string[] = [];
  const kept = tensor.shape.map((size) => keptIndices(size, cut));
  visit(tensor.shape, kept, (at) => texts.push(formatElement(data[at]!, tensor)));
  const width = Math.max(...texts.map((text) => text.length));
  let next = 0;
  const level = (axis: number): string => {
    const size = tensor.shape[axis];
    if (size === undefined) return texts[next++]!.padStart(width);
    const items = kept[axis]!.map((index) => (index === -1 ? "…" : level(axis + 1)));
    const isRow = axis === tensor.rank - 1;
    return `[${items.join(isRow ? ", " : `,\n${" ".repeat(axis + 1)}`)}]`;
  };
  return `${head}\n${level(0)}`;
}

/** The indices of an axis that are shown; -1 stands for the cut. */
function keptIndices(size: number, cut: boolean): number[] {
  const all = Array.from({ length: size }, (_, index) => index);
  return cut && size > 2 * EDGE ? [...all.slice(0, EDGE), -1, ...all.slice(-EDGE)] : all;
}

/** Calls `body` with the row-major place of each element that is shown, in order. */
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
  for (const index of kept[axis]!) if (index >= 0) visit(shape, kept, body, axis + 1, at * size + index);
}

function formatElement(value: number | bigint, { dtype }: Tensor): string {
  if (dtype === "bool") return value ? "true" : "false";
  if (typeof value === "bigint" || !isFloat(dtype)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return Object.is(value, -0) ? "-0" : String(value);
  return String(Number(value.toPrecision(dtype === "float64" ? 8 : 5)));
}
