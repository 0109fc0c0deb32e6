import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { sumOf } from "../../backend/reference/sum.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRange } from "../indexing/range.reference.ts";
import type { CrossEntropyAttributes } from "./primitive.ts";

/** One slice of logits along the classes. */
interface Slice {
  readonly x: readonly number[];
  /** The target; −1 if it is ignored. */
  readonly target: number;
  /** Factors of the classes. */
  readonly factors: readonly number[];
  readonly smoothing: number;
}

/** Computes −(1 − ε) w[y] log p[y] − ε / classes · Σ w[c] log p[c], in float64. */
export const crossEntropyReference: Implementation<
  CrossEntropyAttributes,
  [Tensor, Tensor, ...Tensor[]],
  [Tensor, Tensor, Tensor]
> = {
  run({ operation, inputs, outputs: [losses, used, logSums], attributes }) {
    const [logits, targets, factors] = inputs;
    const size = logits.shape[attributes.axis];
    checkRange({ operation, index: targets, size, except: attributes.ignoreIndex });
    const results = slicesOf(logits, targets, factors, attributes).map(lossOf);
    const column = (at: number) => results.map((result) => result[at]);
    store(losses, column(0));
    store(used, column(1));
    store(logSums, [...column(2), ...column(3)]);
  },
};

function lossOf({
  x,
  target,
  factors,
  smoothing,
}: Slice): [loss: number, factor: number, top: number, logarithm: number] {
  if (target < 0) return [0, 0, 0, 0];
  const { top, logarithm } = logSumOf(x);
  const terms = x.map((value, c) => factors[c] * (logarithm - (value - top)));
  const ofTarget = (1 - smoothing) * terms[target];
  return [
    smoothing === 0 ? ofTarget : ofTarget + (smoothing / x.length) * sumOf(terms),
    factors[target],
    top,
    logarithm,
  ];
}

/** Returns NaN if the largest is infinite, as log-softmax does. */
function logSumOf(x: readonly number[]): { top: number; logarithm: number } {
  const top = x.reduce((best, value) => (best >= value || Number.isNaN(best) ? best : value));
  if (!Number.isFinite(top)) return { top: Number.NaN, logarithm: Number.NaN };
  return { top, logarithm: Math.log(sumOf(x.map((value) => Math.exp(value - top)))) };
}

/** Computes A p[c] − ε / classes · w[c] − (1 − ε) w[y] [c = y] with A = (1 − ε) w[y] + ε / classes · Σ w. */
export const crossEntropyGradientReference: Implementation<
  CrossEntropyAttributes,
  [Tensor, Tensor, Tensor, Tensor, ...Tensor[]],
  [Tensor]
> = {
  run({ inputs, outputs: [gradient], attributes }) {
    const [logits, targets, logSums, scale, factors] = inputs;
    const [sums, scales] = [toNumbers(logSums), toNumbers(scale)];
    const slices = slicesOf(logits, targets, factors, attributes);
    const gradients = slices.map((slice, at) => gradientOf(slice, sums[at], sums[slices.length + at], scales[at]));
    const { length, step } = walkOf(logits, attributes.axis);
    const sliceAt = (element: number) => Math.floor(element / (length * step)) * step + (element % step);
    store(
      gradient,
      Array.from({ length: gradient.size }, (_, at) => gradients[sliceAt(at)][Math.floor(at / step) % length]),
    );
  },
};

function gradientOf({ x, target, factors, smoothing }: Slice, top: number, logarithm: number, scale: number): number[] {
  if (target < 0) return x.map(() => 0);
  const ofTarget = (1 - smoothing) * factors[target];
  const each = smoothing / x.length;
  const share = ofTarget + each * sumOf(factors);
  return x.map(
    (value, c) =>
      scale * (share * Math.exp(value - top - logarithm) - each * factors[c] - (c === target ? ofTarget : 0)),
  );
}

/** Returns the number of classes, and the row-major stride from one to the next. */
const walkOf = ({ shape }: Tensor, axis: number) => ({
  length: shape[axis],
  step: elementCount(shape.slice(axis + 1)),
});

/** Returns the slices in row-major order of the targets. */
function slicesOf(
  logits: Tensor,
  targets: Tensor,
  factors: Tensor | undefined,
  { axis, ignoreIndex, labelSmoothing: smoothing }: CrossEntropyAttributes,
): Slice[] {
  const values = toNumbers(logits);
  const { length, step } = walkOf(logits, axis);
  const weights = factors ? [...toNumbers(factors)] : new Array<number>(length).fill(1);
  return toIntegers(targets).map((target, slice): Slice => {
    const first = Math.floor(slice / step) * length * step + (slice % step);
    return {
      x: Array.from({ length }, (_, c) => values[first + c * step]),
      target: Number(target) === ignoreIndex ? -1 : Number(target),
      factors: weights,
      smoothing,
    };
  });
}
