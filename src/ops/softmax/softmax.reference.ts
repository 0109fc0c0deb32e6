import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { elementCount, type Shape } from "../../tensor/shape.ts";
import type { SoftmaxAttributes, SoftmaxName } from "./names.ts";

type Line = readonly number[];

const total = (line: Line): number => line.reduce((sum, value) => sum + value, 0);
const largest = (line: Line): number => line.reduce((best, value) => (best >= value ? best : value));
const exponentials = (x: Line): number[] => x.map((value) => Math.exp(value - largest(x)));

/** Of a line x; of gradients x is the gradient of the result and y the result. */
const formulas: Readonly<Record<SoftmaxName, (x: Line, y: Line) => number[]>> = {
  softmax(x) {
    const parts = exponentials(x);
    const sum = total(parts);
    return parts.map((part) => part / sum);
  },
  logSoftmax(x) {
    const logarithm = Math.log(total(exponentials(x)));
    return x.map((value) => value - largest(x) - logarithm);
  },
  softmaxGradient(g, y) {
    const sum = total(g.map((value, k) => value * y[k]!));
    return g.map((value, k) => y[k]! * (value - sum));
  },
  logSoftmaxGradient(g, y) {
    const sum = total(g);
    return g.map((value, k) => value - Math.exp(y[k]!) * sum);
  },
};

export const softmaxReference = (name: SoftmaxName): Implementation<SoftmaxAttributes> => ({
  run({ inputs: [x, y], outputs: [output], attributes: { axis } }) {
    store(output!, overLines(toNumbers(x!), y ? toNumbers(y) : new Float64Array(0), x!.shape, axis, formulas[name]));
  },
});

function overLines(
  x: Float64Array,
  y: Float64Array,
  shape: Shape,
  axis: number,
  formula: (x: Line, y: Line) => number[],
): Float64Array {
  const length = shape[axis] ?? 1;
  const step = elementCount(shape.slice(axis + 1));
  const result = new Float64Array(x.length);
  for (let start = 0; start < x.length; start++) {
    if (Math.floor(start / step) % length !== 0) continue;
    const places = Array.from({ length }, (_, k) => start + k * step);
    const line = formula(
      places.map((place) => x[place]!),
      places.map((place) => y[place]!),
    );
    for (const [k, place] of places.entries()) result[place] = line[k]!;
  }
  return result;
}
