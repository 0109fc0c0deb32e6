import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { mapSlices } from "../../backend/reference/slices.ts";
import { sumOf } from "../../backend/reference/sum.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { SoftmaxAttributes, SoftmaxName } from "./primitive.ts";

type Slice = readonly number[];

const largest = (slice: Slice): number => slice.reduce((best, value) => (best >= value ? best : value));

function shifted(x: Slice): number[] {
  const top = largest(x);
  return x.map((value) => value - top);
}

/** Formulas for a slice x; for gradients, x is the gradient of the result and y the result. */
const formulas: Readonly<Record<SoftmaxName, (x: Slice, y: Slice) => number[]>> = {
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
    const sum = sumOf(g.map((value, k) => value * y[k]));
    return g.map((value, k) => y[k] * (value - sum));
  },
  logSoftmaxGradient(g, y) {
    const sum = sumOf(g);
    return g.map((value, k) => value - Math.exp(y[k]) * sum);
  },
};

export const softmaxReference = (
  name: SoftmaxName,
): Implementation<SoftmaxAttributes, [Tensor, ...Tensor[]], [Tensor]> => ({
  run({ inputs: [x, y = x], outputs: [output], attributes: { axis } }) {
    const operands = [x, y].map((operand) => toNumbers(operand));
    store(
      output,
      mapSlices(operands, x.shape, axis, ([values, result]) => formulas[name](values, result)),
    );
  },
});
