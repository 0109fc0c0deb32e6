/** Group normalization as one call of the cpu backend, and its gradients as another. */
import { record } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { array, dtype, flag, real, whole } from "../../backend/fields.ts";
import { fusesOnCpu, hasOnlyCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { add, mul, square, sub } from "../elementwise/arithmetic.ts";
import { rsqrt } from "../elementwise/power.ts";
import { mean } from "../reduction/mean.ts";
import { sum } from "../reduction/sum.ts";
import { reshape } from "../view/reshape.ts";

interface GroupNormAttributes {
  readonly groups: number;
  readonly eps: number;
  readonly hasWeight: boolean;
  readonly hasBias: boolean;
}

/** Returns the fields that both calls have: the dtype and the sizes of x, and the offsets of the operands. */
function layoutOf(x: Tensor, operands: readonly (Tensor | undefined)[]) {
  const [batch, channels] = x.shape;
  const offsets = operands.map((each) => each?.offset ?? 0);
  return { dtype: x.dtype, batch, channels, inner: x.size / (batch * channels), offsets };
}

const groupNormCall = cpuCall(
  "groupNorm",
  {
    dtype,
    batch: whole,
    channels: whole,
    inner: whole,
    groups: whole,
    eps: real,
    hasWeight: flag,
    hasBias: flag,
    offsets: array(whole, 4),
  },
  ["x", "weight", "bias", "result"],
);

const groupNormCpu: Implementation<GroupNormAttributes, readonly [Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [x, ...vectors], outputs: [result], attributes }) {
    const { hasWeight, hasBias } = attributes;
    const operands = [x, hasWeight ? vectors[0] : undefined, hasBias ? vectors[vectors.length - 1] : undefined, result];
    groupNormCall(operation, { ...attributes, ...layoutOf(x, operands) }, operands);
  },
};

const groupNormPrimitive = definePrimitive<GroupNormAttributes>({
  name: "groupNorm",
  family: "normalization",
  implementations: { metal: onlyCpuFuses, cpu: groupNormCpu, reference: onlyCpuFuses },
});

const groupNormGradientCall = cpuCall(
  "groupNormGradient",
  {
    dtype,
    batch: whole,
    channels: whole,
    inner: whole,
    groups: whole,
    eps: real,
    hasWeight: flag,
    offsets: array(whole, 6),
  },
  ["x", "gradient", "weight", "gradX", "gradWeight", "gradBias"],
);

type GradientAttributes = Omit<GroupNormAttributes, "hasBias">;

const groupNormGradientCpu: Implementation<GradientAttributes, readonly Tensor[], [Tensor, Tensor, Tensor]> = {
  run({ operation, inputs: [x, gradient, weight], outputs, attributes }) {
    const operands = [x, gradient, weight, ...outputs];
    groupNormGradientCall(operation, { ...attributes, ...layoutOf(x, operands) }, operands);
  },
};

const groupNormGradientPrimitive = definePrimitive<GradientAttributes>({
  name: "groupNormGradient",
  family: "normalization",
  implementations: { metal: onlyCpuFuses, cpu: groupNormGradientCpu, reference: onlyCpuFuses },
});

/** The calls divide groups among threads, but not the elements of a group: longer groups must be at least `SEVERAL`. */
const [LONGEST, SEVERAL] = [1 << 16, 4];

/** Many groups shorter than this are normalized together by the kernel of short rows. */
const [SHORTEST, MANY] = [32, 1 << 13];

/** Whether {@link normalizedGroups} applies. */
export function fusesGroups(x: Tensor, groups: number, ...vectors: readonly (Tensor | undefined)[]): boolean {
  if (x.size === 0 || !hasOnlyCpu(x, ...vectors.filter((vector) => vector !== undefined))) return false;
  const count = x.shape[0] * groups;
  const length = x.size / count;
  return !((length > LONGEST && count < SEVERAL) || (length < SHORTEST && x.size > MANY));
}

interface Given {
  readonly weight: Tensor | undefined;
  readonly bias: Tensor | undefined;
  readonly eps: number;
}

/** Normalizes groups of channels. */
export function normalizedGroups(operation: string, x: Tensor, groups: number, { weight, bias, eps }: Given): Tensor {
  const wide = accumulationDType(x.dtype);
  const vectors = [weight, bias].filter((vector) => vector !== undefined);
  const attributes = { groups, eps, hasWeight: weight !== undefined, hasBias: bias !== undefined };
  const inputs = [contiguous(x), ...vectors.map((vector) => contiguous(toDType(vector, wide)))];
  const out = execute(groupNormPrimitive, inputs, x.shape, x.dtype, attributes, operation);
  const saved = weight ? [inputs[0], inputs[1]] : [inputs[0]];
  record(operation, inputs, [out], saved, ([gradOut], [kept, factor]) => {
    const given = { x: kept, weight: factor, gradOut, groups, eps };
    const gradients = isFused(kept, gradOut, factor) ? fusedGradients(operation, given) : composedGradients(given);
    return [gradients.x, ...(weight ? [gradients.weight] : []), ...(bias ? [gradients.bias] : [])];
  });
  return out;
}

interface Backward {
  readonly x: Tensor;
  readonly weight: Tensor | undefined;
  readonly gradOut: Tensor;
  readonly groups: number;
  readonly eps: number;
}

type Gradients = Readonly<Record<"x" | "weight" | "bias", Tensor>>;

/** Whether gradients need no gradients, and are computed by the native call. */
const isFused = (...operands: readonly (Tensor | undefined)[]): boolean =>
  fusesOnCpu(...operands.filter((each) => each !== undefined));

function fusedGradients(operation: string, { x, weight, gradOut, groups, eps }: Backward): Gradients {
  const vector = { shape: [x.shape[1]], dtype: accumulationDType(x.dtype) };
  const inputs = [x, contiguous(gradOut), ...(weight ? [weight] : [])];
  const specs = [{ shape: x.shape, dtype: x.dtype }, vector, vector];
  const attributes = { groups, eps, hasWeight: weight !== undefined };
  const results = executeMany(groupNormGradientPrimitive, inputs, specs, attributes, `${operation}Gradient`);
  const [ofX, ofWeight, ofBias] = tupleOf(results, 3);
  return { x: ofX, weight: ofWeight, bias: ofBias };
}

/** The same with differentiable operations: scale · (v − ⟨v⟩ − n · ⟨v · n⟩), where ⟨⟩ is the mean of a group. */
function composedGradients({ x, weight, gradOut, groups, eps }: Backward): Gradients {
  const wide = accumulationDType(x.dtype);
  const [batch, channels] = tupleOf(x.shape, 2);
  const rows = [batch * groups, x.size / (batch * groups)];
  const lines = [batch, channels, x.size / (batch * channels)];
  const ofRow = (tensor: Tensor): Tensor => mean(tensor, { dim: 1, keepdim: true });
  const input = reshape(toDType(x, wide), rows);
  const centered = sub(input, ofRow(input));
  const scale = rsqrt(add(ofRow(square(centered)), eps));
  const normalized = mul(centered, scale);
  const gradient = reshape(toDType(gradOut, wide), lines);
  const v = reshape(weight ? mul(gradient, reshape(weight, [1, channels, 1])) : gradient, rows);
  const ofX = mul(scale, sub(sub(v, ofRow(v)), mul(normalized, ofRow(mul(v, normalized)))));
  return {
    x: toDType(reshape(ofX, x.shape), x.dtype),
    weight: sum(mul(gradient, reshape(normalized, lines)), { dim: [0, 2] }),
    bias: sum(gradient, { dim: [0, 2] }),
  };
}
