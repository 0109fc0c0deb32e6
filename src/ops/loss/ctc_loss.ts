/** Connectionist temporal classification (CTC): the loss of label sequences without alignment. */
import { isGradEnabled } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { checkElements, underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { either, flag, listOf, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters, required } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { tensor } from "../creation/tensor.ts";
import { add, neg } from "../elementwise/arithmetic.ts";
import { gt } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { maximum } from "../elementwise/extrema.ts";
import { logaddexp } from "../elementwise/logaddexp.ts";
import { where } from "../elementwise/where.ts";
import { composedGradients } from "../gradient/composed_gradients.ts";
import { gatherAlong } from "../indexing/adjoint.ts";
import { anIndex, type IndexDType } from "../indexing/indices.ts";
import { cat } from "../join/cat.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { narrow, select } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { type CtcFinish, ctcBackward, ctcForward } from "./ctc_primitives.ts";
import { checkFloats, type LossOptions, reductionParameter } from "./options.ts";
import { reduced } from "./reduced.ts";

/** Options of {@link ctcLoss}. */
export interface CtcLossOptions extends LossOptions {
  /** The blank class. Default 0. */
  blank?: number | undefined;
  /** Whether infinite losses become 0, without a gradient. Default false. */
  zeroInfinity?: boolean | undefined;
}

/** The length of each batch element; a number for a batch of one. */
export type Lengths = Tensor<IndexDType> | readonly number[] | number;

/**
 * Computes the negative log probability of label sequences, summed over all alignments to the time steps. In an
 * alignment, a label may repeat over several steps. Blanks may separate labels, and must separate equal ones. `"mean"`
 * divides each loss by its number of labels, then averages over the batch. Labels and lengths are read on the host,
 * which waits for the device.
 *
 * Source: A. Graves et al., "Connectionist Temporal Classification", 2006. Gradients of every order are supported.
 *
 * @param logProbs log probabilities of the classes: [times, batch, classes], or [times, classes]
 * @param targets labels: [batch, labels], or concatenated in one row
 * @param inputLengths number of time steps of each batch element
 * @param targetLengths number of labels of each batch element
 * @returns a scalar tensor, or [batch] with `reduction: "none"`, in the dtype of logProbs
 *
 * @example
 * const x = log(tensor([[[0.5, 0.5]], [[0.5, 0.5]]]));
 * ctcLoss(x, tensor([[1n]]), [2], [1]); // float32 0.28768207
 *
 * @throws {ShapeError} if shapes or lengths do not match. @throws {DTypeError} if logProbs are not floats, or labels
 * are not integers. @throws {ArgumentError} if a label or the blank is not a class.
 */
export function ctcLoss<D extends DType>(
  logProbs: Tensor<D>,
  targets: Tensor<IndexDType>,
  inputLengths: Lengths,
  targetLengths: Lengths,
  ...options: Given<CtcLossOptions, ["blank"]>
): Tensor<D>;
export function ctcLoss(...values: unknown[]): Tensor {
  const { logProbs, targets, blank, reduction, zeroInfinity, ...given } = ctcLossParameters(values);
  checkFloats("ctcLoss", "logProbs", logProbs);
  if (logProbs.rank !== 2 && logProbs.rank !== 3)
    throw new ShapeError(
      "ctcLoss",
      "wrongRank",
      `expected logProbs to be [times, batch, classes] or [times, classes], got ${logProbs.describe()}`,
    );
  checkElements("ctcLoss", [logProbs, targets]);
  const batched = logProbs.rank === 3 ? logProbs : unsqueeze(logProbs, 1);
  const labels = labelsOf(batched, targets, { ...given, blank });
  return underName("ctcLoss", () =>
    tidy(() => {
      const wide = toDType(batched, accumulationDType(batched.dtype));
      const finish = { isMean: reduction === "mean", infinite: zeroInfinity ? 0 : Infinity };
      const result = toDType(reduced(lossesOf(wide, labels, finish), reduction), logProbs.dtype);
      return reduction === "none" && logProbs.rank === 2 ? reshape(result, []) : result;
    }),
  );
}
const lengths = either(someNumber, listOf(someNumber, "a list of numbers"), anIndex);
const ctcLossParameters = parameters("ctcLoss", {
  logProbs: operand(aTensor),
  targets: operand(anIndex),
  inputLengths: required(lengths),
  targetLengths: required(lengths),
  blank: optional(someNumber, 0),
  reduction: reductionParameter,
  zeroInfinity: named(flag, false),
});

/** Labels interleaved with blanks, padded to one length. */
interface Labels {
  /** [batch, 2 · longest + 1]: blank, label, blank, …, blank. */
  readonly classes: BigInt64Array;
  readonly width: number;
  /** Time steps of each batch element. */
  readonly times: readonly number[];
  readonly counts: readonly number[];
}

const numbersOf = (given: Lengths): number[] => {
  if (typeof given === "number") return [given];
  return given instanceof Tensor ? Array.from(given.dataSync(), Number) : [...given];
};

function labelsOf(
  { shape }: Tensor,
  targets: Tensor,
  given: { inputLengths: Lengths; targetLengths: Lengths; blank: number },
): Labels {
  const [length, batch, classes] = tupleOf(shape, 3);
  const times = checkedLengths("inputLengths", numbersOf(given.inputLengths), batch, length);
  const isMatrix = targets.rank === 2;
  const counts = checkedLengths(
    "targetLengths",
    numbersOf(given.targetLengths),
    batch,
    isMatrix ? targets.shape[1] : targets.size,
  );
  const total = counts.reduce((most, count) => most + count, 0);
  const isRow = targets.rank === 1 && (batch === 1 ? targets.size >= total : targets.size === total);
  if (!(isMatrix ? targets.shape[0] === batch : isRow))
    throw new ShapeError(
      "ctcLoss",
      "shapesDiffer",
      `expected targets to be [${batch}, labels] or one row of ${total} labels, got ${targets.describe()}`,
    );
  const { blank } = given;
  if (!Number.isInteger(blank) || blank < 0 || blank >= classes)
    throw new ArgumentError("ctcLoss", "invalidClass", `expected blank to be from 0 to ${classes - 1}, got ${blank}`);
  const values = targets.dataSync();
  const width = 2 * Math.max(...counts, 0) + 1;
  const stretched = new BigInt64Array(batch * width).fill(BigInt(blank));
  let start = 0;
  for (const [at, count] of counts.entries()) {
    const from = isMatrix ? at * targets.shape[1] : start;
    for (let label = 0; label < count; label++)
      stretched[at * width + 2 * label + 1] = BigInt(checkedLabel(Number(values[from + label]), classes));
    start += count;
  }
  return { classes: stretched, width, times, counts };
}

function checkedLabel(label: number, classes: number): number {
  if (label >= 0 && label < classes) return label;
  throw new ArgumentError("ctcLoss", "invalidClass", `expected targets from 0 to ${classes - 1}, got ${label}`);
}

function checkedLengths(name: string, given: readonly number[], batch: number, most: number): readonly number[] {
  if (given.length !== batch)
    throw new ShapeError(
      "ctcLoss",
      "lengthsDiffer",
      `expected ${name} to have ${batch} numbers, one for each element of the batch, got ${given.length}`,
    );
  for (const each of given)
    if (!Number.isInteger(each) || each < 0 || each > most)
      throw new ShapeError("ctcLoss", "invalidLength", `expected ${name} from 0 to ${most}, got ${each}`);
  return given;
}

/** Stands for log 0. It is finite, so that sums stay finite and no gradient is NaN. */
const NEVER = -1e30;
/** Losses above this are infinite: no positive probability has a larger negative logarithm. */
const INFINITE = 1e29;

/** Computes −log p of each batch element. */
function lossesOf(logProbs: Tensor, labels: Labels, finish: CtcFinish): Tensor {
  const composed = (x: Tensor): Tensor => finished(composedLosses(x, labels), labels, finish);
  if (firstBackend() !== "cpu") return composed(logProbs);
  const { classes, width, times, counts } = labels;
  const batch = times.length;
  const states = tensor(classes, { shape: [batch, width] });
  const lengths = tensor(BigInt64Array.from([...times, ...counts], BigInt), { shape: [2, batch] });
  const { losses, alphas, totals } = ctcForward(logProbs, states, lengths, finish);
  const save = [logProbs, states, lengths, alphas, totals];
  record("ctcLoss", [logProbs], [losses], save, ([gradient], saved, needs) =>
    isGradEnabled()
      ? composedGradients(([x]) => composed(x), [saved[0]], needs, gradient)
      : [ctcBackward([...saved, contiguous(gradient)], finish)],
  );
  return losses;
}

/** Computes the losses with other operations from the forward variables α, differentiable to any order. */
function composedLosses(logProbs: Tensor, { classes, width, times, counts }: Labels): Tensor {
  const [length, batch] = tupleOf(logProbs.shape, 2);
  const { dtype } = logProbs;
  const index = expand(unsqueeze(tensor(classes, { shape: [batch, width] }), 0), [length, batch, width]);
  const taken = gatherAlong("ctcLoss", maximum(logProbs, NEVER), index, 2);
  const maySkip = skipsOf(classes, batch, width);
  const never = (columns: number): Tensor => expand(filled([], dtype, NEVER), [batch, columns]);
  const shifted = (states: Tensor, by: number): Tensor =>
    cat([never(Math.min(by, width)), narrow(states, 1, 0, Math.max(width - by, 0))], 1);
  // The initial state is the first blank with probability 1; the first step reaches the first blank or label.
  let alpha: Tensor = cat([filled([batch, 1], dtype, 0), never(width - 1)], 1);
  for (let time = 0; time < length; time++) {
    const near = logaddexp(alpha, shifted(alpha, 1));
    const skipped = where(maySkip, shifted(alpha, 2), NEVER);
    const next = add(logaddexp(near, skipped), select(taken, 0, time));
    const isRunning = times.map((steps) => time < steps);
    alpha = isRunning.every(Boolean) ? next : where(unsqueeze(tensor(isRunning), 1), next, alpha);
  }
  const last = tensor(
    BigInt64Array.from(counts, (count) => BigInt(2 * count)),
    { shape: [batch, 1] },
  );
  const before = tensor(
    BigInt64Array.from(counts, (count) => BigInt(Math.max(2 * count - 1, 0))),
    {
      shape: [batch, 1],
    },
  );
  const ends = [last, before].map((place) => reshape(gatherAlong("ctcLoss", alpha, place, 1), [batch]));
  const hasLabels = tensor(counts.map((count) => count > 0));
  return neg(logaddexp(ends[0], where(hasLabels, ends[1], NEVER)));
}

/** Returns where a blank may be skipped: before a label that differs from the previous label. */
function skipsOf(classes: BigInt64Array, batch: number, width: number): Tensor<"bool"> {
  const skips = Array.from(classes, (label, place) => {
    const column = place % width;
    return column % 2 === 1 && column > 2 && label !== classes[place - 2];
  });
  return reshape(tensor(skips), [batch, width]);
}

/** Replaces infinite losses, and divides by the numbers of labels. */
function finished(losses: Tensor, { counts }: Labels, { isMean, infinite }: CtcFinish): Tensor {
  const replaced = where(gt(losses, INFINITE), infinite, losses);
  if (!isMean) return replaced;
  const labels = Float64Array.from(counts, (count) => Math.max(count, 1));
  return div(replaced, tensor(labels, { dtype: losses.dtype }));
}
