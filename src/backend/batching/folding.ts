/** Rules of primitives with a batch axis or rows: the axis of examples is merged into the batch axis or the rows. */
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { executeMany } from "../dispatch.ts";
import { primitiveOf } from "../primitive.ts";
import { channelStatistics, normalizationBackward, normalizationForward } from "./normalization.ts";
import {
  behind,
  countOf,
  dense,
  folded,
  type Operand,
  type Rule,
  repeatedFor,
  shifted,
  toFront,
  unfolded,
} from "./rule.ts";

/**
 * Primitives with dense operands, and an attribute with the number of planes or batches.
 *
 * @param own the operands that have these planes; all examples must share the others
 */
const byCount =
  (name: string, own: readonly number[]): Rule =>
  (operands, _, attributes) => {
    const count = countOf(operands);
    if (operands.some(({ isBatched }, at) => isBatched && !own.includes(at))) return null;
    const inputs = operands.map((operand, at) =>
      own.includes(at) ? dense(repeatedFor(operand, count)) : operand.tensor,
    );
    return { inputs, attributes: { ...attributes, [name]: (attributes[name] as number) * count } };
  };

/**
 * Convolutions whose weights differ between examples, and gradients of weights: the examples become groups of channels.
 *
 * @param images the operands [batch, channels, …]; inside another `vmap` the batch may be several axes
 * @param isImage whether the result has this layout too
 */
const asGroups =
  (images: readonly number[], isImage: boolean): Rule =>
  (operands, [result], attributes) => {
    const count = countOf(operands);
    const batch = attributes["batch"] as number;
    const inputs = operands.map((operand, at) => {
      const all = repeatedFor(operand, count);
      return dense(images.includes(at) ? behind(all, axesOf(all.shape.slice(1), batch)) : all);
    });
    const grouped = { ...attributes, groups: (attributes["groups"] as number) * count };
    if (!isImage) return { inputs, attributes: grouped };
    const { shape, dtype } = result;
    const axes = axesOf(shape, batch);
    return {
      inputs,
      attributes: grouped,
      specs: [{ shape: shape.toSpliced(axes, 0, count), dtype }],
      finish: ([found]) => [toFront(found, axes)],
    };
  };

/** Returns the number of leading axes whose sizes multiply to `elements`. */
function axesOf(shape: Shape, elements: number): number {
  let product = 1;
  let axes = 0;
  while (product !== elements && axes < shape.length) product *= shape[axes++];
  return axes;
}

/** Tries rules in order. */
const firstOf =
  (...rules: readonly Rule[]): Rule =>
  (...call) =>
    rules.reduce<ReturnType<Rule>>((found, rule) => found ?? rule(...call), null);

/** Operands by the names in the attributes. */
const named = (operands: readonly Operand[], attributes: Readonly<Record<string, unknown>>) =>
  operands.map((operand, at) => ({ ...operand, name: (attributes["inputs"] as readonly string[])[at] }));

/** Attention: examples join the batch, unless an operand that broadcasts along the batch differs between examples. */
const attention: Rule = (operands, results, attributes) => {
  const all = named(operands, attributes);
  if (attributes["packed"] !== undefined || attributes["dropout"] !== undefined) return null;
  const outputs = attributes["outputs"] as readonly string[];
  if (outputs.includes("gradBias") || outputs.includes("gradSinks")) return null;
  const broadcasts = (name: string) => ["mask", "bias", "sinks", "slopes"].includes(name);
  const isSame = ({ tensor, isBatched, name }: (typeof all)[number]) =>
    !isBatched &&
    (name === "sinks" || (name === "slopes" ? tensor.shape[0] === 1 : tensor.rank < 4 || tensor.shape[0] === 1));
  if (all.some((operand) => broadcasts(operand.name) && !isSame(operand))) return null;
  const count = countOf(operands);
  return {
    inputs: all.map((operand) => (broadcasts(operand.name) ? operand.tensor : folded(repeatedFor(operand, count)))),
    attributes,
    specs: results.map(({ shape: [batch, ...shape], dtype }) => ({ shape: [count * batch, ...shape], dtype })),
    finish: (found) => found.map((result) => unfolded(result, count)),
  };
};

/** Primitives whose operands and results have a batch axis first, such as distances of points [batch, n, k]. */
const batches: Rule = (operands, results, attributes) => {
  if (attributes["isTriangle"] === true) return null;
  const count = countOf(operands);
  return {
    inputs: operands.map((operand) => folded(repeatedFor(operand, count))),
    attributes,
    specs: results.map(({ shape: [batch, ...shape], dtype }) => ({ shape: [count * batch, ...shape], dtype })),
    finish: (found) => found.map((result) => unfolded(result, count)),
  };
};

/** Elementwise losses. If each example's losses are reduced, a second call computes their sum or mean. */
const loss: Rule = (operands, [result], attributes) => {
  const count = countOf(operands);
  const inputs = operands.map((operand) => repeatedFor(operand, count));
  if (attributes["isSummed"] !== true) return { inputs, attributes };
  const { shape, dtype } = inputs[0];
  const size = shape.slice(1).reduce((product, each) => product * each, 1);
  const { factor } = attributes;
  if (dtype !== result.dtype || (factor !== 1 && factor !== 1 / size)) return null;
  const reduce = (losses: Tensor): Tensor =>
    executeMany(primitiveOf(factor === 1 ? "sum" : "mean"), [losses], [{ shape: [count], dtype }], {
      axes: shape.slice(1).map((_, axis) => axis + 1),
      parameter: 0,
    } as never)[0];
  return {
    inputs,
    attributes: { ...attributes, isSummed: false, factor: 1 },
    specs: [{ shape, dtype }],
    finish: ([losses]) => [reduce(losses)],
  };
};

/** Moves the first axis of a view behind the second one. */
const swapped = (x: Tensor): Tensor => behind(x, 1);

/**
 * Cross entropy: the third operand or result starts with an axis of two planes, and the class weights are the last
 * operand.
 */
const crossEntropy =
  (perExample: number): Rule =>
  (operands, results, attributes) => {
    if (operands.slice(perExample).some(({ isBatched }) => isBatched)) return null;
    const count = countOf(operands);
    const inputs = operands.map((operand, at) => (at < perExample ? repeatedFor(operand, count) : operand.tensor));
    if (perExample > 2) inputs[2] = swapped(inputs[2]);
    if (results.length === 1) return { inputs, attributes: shifted(attributes, ["axis"]) };
    const specs = results.map(({ shape, dtype }, at) => ({
      shape: at < 2 ? [count, ...shape] : [shape[0], count, ...shape.slice(1)],
      dtype,
    }));
    const finish = ([losses, used, planes]: readonly Tensor[]) => [losses, used, swapped(planes)];
    return { inputs, attributes: shifted(attributes, ["axis"]), specs, finish };
  };

/** Rotary embeddings: positions are [seq] or [batch, seq], so examples with different positions join the batch. */
const rope: Rule = (operands, [result], attributes) => {
  const [x, positions] = operands as [Operand, Operand?];
  const count = countOf(operands);
  if (!positions) return { inputs: [x.tensor], attributes };
  const rank = positions.tensor.rank - (positions.isBatched ? 1 : 0);
  if (rank === 1) return { inputs: [repeatedFor(x, count), positions.tensor], attributes };
  const {
    shape: [batch, ...shape],
    dtype,
  } = result;
  return {
    inputs: [x, positions].map((operand) => folded(repeatedFor(operand, count))),
    attributes,
    specs: [{ shape: [count * batch, ...shape], dtype }],
    finish: ([found]) => [unfolded(found, count)],
  };
};

/** Searches in sorted lists that have the same leading axes as the values. */
const search: Rule = (operands, _, attributes) => {
  const [sorted, values] = operands.map(({ tensor, isBatched }) => tensor.rank - (isBatched ? 1 : 0));
  if (sorted !== values) return null;
  const count = countOf(operands);
  return { inputs: operands.map((operand) => dense(repeatedFor(operand, count))), attributes };
};

/** The rules by the names of primitives. */
export const folding: Readonly<Record<string, Rule>> = {
  maxPool: byCount("planes", [0]),
  maxPoolGradient: byCount("planes", [0, 1]),
  resample: byCount("planes", [0]),
  convolution: firstOf(byCount("batch", [0]), asGroups([0], true)),
  convolutionTransposed: firstOf(byCount("batch", [0]), asGroups([0], true)),
  convolutionWeight: asGroups([0, 1], false),
  fold: batches,
  batchNorm: channelStatistics,
  batchNormGradient: channelStatistics,
  normalizationForward,
  normalizationBackward,
  attentionForward: attention,
  attentionBackward: attention,
  cdist: batches,
  cdistGradient: batches,
  loss,
  crossEntropy: crossEntropy(2),
  crossEntropyGradient: crossEntropy(4),
  rope,
  searchSorted: search,
};
