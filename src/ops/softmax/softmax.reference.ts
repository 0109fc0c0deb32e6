import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { elementCount, type Shape } from "../../tensor/shape.ts";
import { sumOf } from "../reduction/reduce.reference.ts";
import type { SoftmaxAttributes, SoftmaxName } from "./names.ts";

type Line = readonly number[];

const largest = (line: Line): number => line.reduce((best, value) => (best >= value ? best : value));

function shifted(x: Line): number[] {
  const top = largest(x);
  return x.map((value) => value - top);
}

/** Of a line x; of gradients x is the gradient of the result and y the result. */
const formulas: Readonly<Record<SoftmaxName, (x: Line, y: Line) => number[]>> = {
  softmax(x) {
    const parts = shifted(x).map(Math.exp);
    const sum = sumOf(parts);
    return parts.map((part) => part / sum);
  },
  logSoftmax(x) {
    const differences = shifted(x);
    const logarithm = Math.log(sumOf(differences.map(Math.exp)));
    return differences.map((value) => value - logarithm);
  },
  softmaxGradient(g, y) {
    const sum = sumOf(g.map((value, k) => value * y[k]!));
    return g.map((value, k) => y[k]! * (value - sum));
  },
  logSoftmaxGradient(g, y) {
    const sum = sumOf(g);
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
