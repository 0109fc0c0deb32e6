/** Group normalization as one call of the cpu backend, without a gradient. */
import { needsGradient } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, flag, real, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";

interface GroupNormAttributes {
  readonly groups: number;
  readonly eps: number;
  readonly hasWeight: boolean;
  readonly hasBias: boolean;
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
    const [batch, channels] = x.shape as [number, number];
    const offsets = operands.map((each) => each?.offset ?? 0);
    const block = { ...attributes, dtype: x.dtype, batch, channels, inner: x.size / (batch * channels), offsets };
    groupNormCall(operation, block, operands);
  },
};

const groupNormPrimitive = definePrimitive<GroupNormAttributes>({
  name: "groupNorm",
  family: "normalization",
  implementations: { metal: onlyCpuFuses, cpu: groupNormCpu, reference: onlyCpuFuses },
});

/** The call divides groups among threads, but not the elements of a group. */
const LONGEST = 1 << 16;

/** Many groups shorter than this are normalized together by the kernel of short rows. */
const [SHORTEST, MANY] = [32, 1 << 13];

/** Whether {@link normalizedGroups} applies. */
export function fusesGroups(x: Tensor, groups: number, ...vectors: readonly (Tensor | undefined)[]): boolean {
  if (firstBackend() !== "cpu" || capturing() !== undefined || x.size === 0) return false;
  const length = x.size / (x.shape[0] * groups);
  if (length > LONGEST || (length < SHORTEST && x.size > MANY)) return false;
  const operands = [x, ...vectors.filter((vector) => vector !== undefined)];
  return !needsGradient(...operands) && liftingOf(operands, undefined) === undefined;
}

/** Normalizes groups of channels. */
export function normalizedGroups(
  operation: string,
  x: Tensor,
  groups: number,
  given: { readonly weight: Tensor | undefined; readonly bias: Tensor | undefined; readonly eps: number },
): Tensor {
  const wide = accumulationDType(x.dtype);
  const vectors = [given.weight, given.bias].filter((vector) => vector !== undefined);
  const attributes = {
    groups,
    eps: given.eps,
    hasWeight: given.weight !== undefined,
    hasBias: given.bias !== undefined,
  };
  const inputs = [contiguous(x), ...vectors.map((vector) => contiguous(toDType(vector, wide)))];
  return execute(groupNormPrimitive, inputs, x.shape, x.dtype, attributes, operation);
}
