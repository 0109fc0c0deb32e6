/** Normalization of channels: one primitive for each pass, and the gradients. */
import { needsGradient, record } from "../../autograd/record.ts";
import { capturing } from "../../backend/capture.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { keysOf } from "../../core/records.ts";
import { tupleOf } from "../../core/tuples.ts";
import { accumulationDType, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { add, mul, neg, sub } from "../elementwise/arithmetic.ts";
import { rsqrt } from "../elementwise/power.ts";
import { mean } from "../reduction/mean.ts";
import { sum } from "../reduction/sum.ts";
import { filled } from "../view/embed.ts";
import { reshape } from "../view/reshape.ts";
import { batchNormCpu, batchNormGradientCpu } from "./batch_norm.cpu.ts";
import { batchNormGradientMetal, batchNormMetal } from "./batch_norm.metal.ts";
import { batchNormGradientReference, batchNormReference } from "./batch_norm.reference.ts";
import type { BatchNormAttributes, BatchNormGradientName, BatchNormName } from "./batch_norm_primitive.ts";
import { fusesGroups, normalizedGroups } from "./group_norm.cpu.ts";
import { normalize } from "./normalize.ts";
import { type Named, namedTensors, present } from "./problem.ts";
import { type GradientSource, type Gradients, type NormalizedRows, recordGradients } from "./second_gradients.ts";

const batchNormPrimitive = definePrimitive<BatchNormAttributes<BatchNormName>>({
  name: "batchNorm",
  family: "normalization",
  implementations: { metal: batchNormMetal, cpu: batchNormCpu, reference: batchNormReference },
});

const batchNormGradientPrimitive = definePrimitive<BatchNormAttributes<BatchNormGradientName>>({
  name: "batchNormGradient",
  family: "normalization",
  implementations: { metal: batchNormGradientMetal, cpu: batchNormGradientCpu, reference: batchNormGradientReference },
});

/** Statistics of channels: vectors of the accumulation dtype. */
export interface Statistics {
  readonly mean: Tensor;
  /** Population variance. */
  readonly variance: Tensor;
}

interface Options extends Named<"weight" | "bias"> {
  readonly eps: number;
}

/** Reshapes a vector with one number for each channel so that it broadcasts to x. */
export const alongChannels = (vector: Tensor, { rank, dtype }: Tensor): Tensor =>
  reshape(toDType(vector, dtype), [1, vector.size, ...new Array<number>(rank - 2).fill(1)]);

/**
 * Normalizes x [batch, channels, …] with the statistics of its channels. The returned statistics have no autograd
 * history; they are 0 if x is empty.
 */
export function ofChannels(operation: string, x: Tensor, { eps, ...given }: Options): Statistics & { out: Tensor } {
  const dtype = accumulationDType(x.dtype);
  if (x.size === 0) {
    const none = filled([x.shape[1]], dtype, 0);
    return { out: ofNothing(x, widened(x, given)), mean: none, variance: none };
  }
  const lines = linesOf(x); // allocated first, since this allocation is the most likely to run out of memory
  const vectors = widened(x, given);
  const inputs = present({ x: lines, ...vectors });
  const vector = { shape: [x.shape[1]], dtype };
  const specs = [{ shape: lines.shape, dtype: x.dtype }, vector, vector];
  const outputs = ["out", "mean", "variance"] as const;
  const call = { inputs: inputs.names, outputs, eps };
  const results = executeMany(batchNormPrimitive, inputs.tensors, specs, call, operation);
  const [out, average, variance] = tupleOf(results, 3);
  const saved = present({ x: lines, mean: average, variance, weight: vectors.weight });
  record(operation, inputs.tensors, [out], saved.tensors, ([gradOut], tensors, needs) => {
    const kept = { ...namedTensors<Saved>(saved.names, tensors), gradOut: contiguous(gradOut) };
    const needed = new Set(inputs.names.filter((_, at) => needs[at]));
    const gradients = gradientsOf(operation, eps, kept, needed);
    return inputs.names.map((name) => gradients[name] ?? null);
  });
  return { out: reshape(out, x.shape), mean: average, variance };
}

/** Normalizes x with given statistics, which are differentiable. */
export function withStatistics(operation: string, x: Tensor, { eps, ...given }: Options & Statistics): Tensor {
  if (x.size === 0) return ofNothing(x, widened(x, given));
  const inputs = present({ x: linesOf(x), ...widened(x, given) });
  const call = { inputs: inputs.names, outputs: ["out"] as const, eps };
  const lines = inputs.tensors[0];
  const specs = [{ shape: lines.shape, dtype: x.dtype }];
  const [out] = tupleOf(executeMany(batchNormPrimitive, inputs.tensors, specs, call, operation), 1);
  record(operation, inputs.tensors, [out], inputs.tensors, ([gradOut], tensors, needs) => {
    const kept = namedTensors<Given>(inputs.names, tensors);
    const needed = new Set(inputs.names.filter((_, at) => needs[at]));
    const gradients = gradientsOfGiven(kept, gradOut, eps, needed);
    return inputs.names.map((name) => gradients[name] ?? null);
  });
  return reshape(out, x.shape);
}

/** Returns x as contiguous [batch, channels, inner]. */
const linesOf = (x: Tensor): Tensor => {
  const [batch, channels] = tupleOf(x.shape, 2);
  return reshape(contiguous(x), [batch, channels, x.size / (batch * channels)]);
};

/** Converts vectors to contiguous ones of the accumulation dtype, as kernels expect. */
function widened<Name extends string>(x: Tensor, vectors: Named<Name>): Named<Name> {
  const dtype = accumulationDType(x.dtype);
  const { names, tensors } = present(vectors);
  return namedTensors<Named<Name>>(
    names,
    tensors.map((vector) => contiguous(toDType(vector, dtype))),
  );
}

/** Returns the empty result of an empty x, connected to all operands in the graph. */
function ofNothing(x: Tensor, vectors: Named<string>): Tensor {
  const total = present(vectors).tensors.reduce((sum, vector) => add(sum, alongChannels(vector, x)), x);
  return toDType(total, x.dtype);
}

type Saved = Statistics & Named<"weight"> & { readonly x: Tensor };

/** Computes the gradients needed for statistics computed from x, in one differentiable call. */
function gradientsOf(
  operation: string,
  eps: number,
  operands: Saved & { readonly gradOut: Tensor },
  needed: ReadonlySet<GradientSource>,
): Gradients {
  const { x, weight, gradOut, mean: average, variance } = operands;
  const inputs = present({ x, gradOut, weight, mean: average, variance });
  const names = { x: "gradX", weight: "gradWeight", bias: "gradBias" } as const;
  const sources = keysOf(names).filter((source) => needed.has(source));
  const call = { inputs: inputs.names, outputs: sources.map((source) => names[source]), eps };
  const specs = sources.map((source) => {
    const { shape, dtype } = source === "x" ? x : average;
    return { shape, dtype };
  });
  const results = executeMany(batchNormGradientPrimitive, inputs.tensors, specs, call, operation);
  const variables = present({ x, weight, gradOut });
  return recordGradients({ operation, inputs, variables, sources, results }, (saved: typeof operands) =>
    channelsFor(operation, eps, saved),
  );
}

/** Returns the layout of channels, each with one weight, for second-order gradients. */
function channelsFor(operation: string, eps: number, { mean: average, variance }: Statistics): NormalizedRows {
  const spread = (vector: Tensor): Tensor => reshape(vector, [1, vector.size, 1]);
  return {
    isCentered: true,
    eps,
    spread,
    scale: spread(rsqrt(add(variance, eps))),
    mean: (x) => mean(x, { dim: [0, 2], keepdim: true }),
    gradient: (x, v) =>
      gradientsOf(operation, eps, { x, mean: average, variance, gradOut: contiguous(v) }, new Set(["x"])).x!,
  };
}

type Given = Saved & Named<"bias">;

/**
 * Computes gradients for given statistics with differentiable operations; out is linear in all operands but the
 * variance.
 */
function gradientsOfGiven(
  { x: input, mean: average, variance, weight }: Given,
  given: Tensor,
  eps: number,
  needed: ReadonlySet<string>,
): Gradients & Named<"mean" | "variance"> {
  const x = toDType(input, variance.dtype);
  const gradient = toDType(given, variance.dtype);
  const scale = rsqrt(add(variance, eps));
  const factor = weight ? mul(scale, weight) : scale;
  const total = (terms: Tensor): Tensor => sum(terms, { dim: [0, 2] });
  const ofBias = total(gradient);
  const isOfX = needed.size === 1 && needed.has("x");
  const centered = isOfX ? undefined : sub(x, alongChannels(average, x));
  const products = centered && total(mul(gradient, centered));
  return {
    x: needed.has("x") ? toDType(mul(gradient, alongChannels(factor, x)), input.dtype) : null,
    bias: ofBias,
    ...(products && {
      weight: mul(products, scale),
      mean: neg(mul(ofBias, factor)),
      variance: mul(mul(products, mul(factor, mul(scale, scale))), -0.5),
    }),
  };
}

/**
 * Checks that x has floats and channels, and that vectors have one float for each channel. @throws {ShapeError}
 * @throws {DTypeError}
 */
export function checkChannels(
  operation: string,
  x: Tensor,
  vectors: Readonly<Record<string, Tensor | undefined>>,
): void {
  if (!isFloat(x.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected floats, got ${x.describe()}; convert with toDType(x, "float32")`,
    );
  if (x.rank < 2)
    throw new ShapeError(operation, "wrongRank", `expected x to be [batch, channels, …], got ${x.describe()}`);
  for (const [name, vector] of Object.entries(vectors)) {
    if (!vector) continue;
    if (!isFloat(vector.dtype))
      throw new DTypeError(operation, "notAFloat", `expected ${name} to be floats, got ${vector.describe()}`);
    if (vector.rank !== 1 || vector.size !== x.shape[1])
      throw new ShapeError(
        operation,
        "shapesDiffer",
        `expected ${name} to be a vector of ${x.shape[1]} elements, one for each channel, got ${vector.describe()}`,
      );
  }
}

/**
 * Groups are normalized as rows, many at a time, if there are at least `MANY` of them with at most `SHORT` elements
 * each.
 */
const [MANY, SHORT] = [16, 4096];
/** Number of elements from which one call for weight and bias is faster than a product and a sum. */
const FEWEST = 2048;

/** Whether weight and bias are applied in one pass. With gradients, a product and a sum are computed instead. */
const isAppliedAtOnce = (x: Tensor, ...vectors: readonly (Tensor | undefined)[]): boolean => {
  const operands = [x, ...vectors.filter((vector) => vector !== undefined)];
  if (x.size < FEWEST || needsGradient(...operands)) return false;
  return liftingOf(operands, undefined) === undefined && capturing() === undefined;
};

/**
 * Normalizes groups of channels: each group of each batch element becomes a channel of a batch of one. Weight and bias
 * are applied afterwards.
 */
export function ofGroups(
  operation: string,
  x: Tensor,
  groups: number,
  {
    weight,
    bias,
    eps,
  }: { readonly weight: Tensor | undefined; readonly bias: Tensor | undefined; readonly eps: number },
): Tensor {
  if (fusesGroups(x, groups, weight, bias)) return normalizedGroups(operation, x, groups, { weight, bias, eps });
  const wide = toDType(x, accumulationDType(x.dtype));
  const count = x.shape[0] * groups;
  const length = x.size / Math.max(count, 1);
  const out =
    count >= MANY && length > 0 && length <= SHORT && firstBackend() === "cpu" && capturing() === undefined
      ? normalize({ operation, isCentered: true, eps, operands: { x: reshape(wide, [count, length]) } }).out
      : ofChannels(operation, reshape(wide, [1, count, length]), { eps }).out;
  const normalized = reshape(out, x.shape);
  if ((weight || bias) && isAppliedAtOnce(normalized, weight, bias)) {
    const [mean, variance] = [0, 1].map((value) => filled([x.shape[1]], normalized.dtype, value)) as [Tensor, Tensor];
    return toDType(withStatistics(operation, normalized, { eps: 0, mean, variance, weight, bias }), x.dtype);
  }
  const product = weight ? mul(normalized, alongChannels(weight, normalized)) : normalized;
  return toDType(bias ? add(product, alongChannels(bias, normalized)) : product, x.dtype);
}
