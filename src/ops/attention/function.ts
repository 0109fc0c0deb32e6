/** Attention's autograd functions: saved tensors and gradients. */

import { enableGrad, isGradEnabled } from "../../autograd/modes.ts";
import { AutogradError } from "../../autograd/node.ts";
import type { OutputSpec } from "../../backend/allocation.ts";
import { executeMany } from "../../backend/dispatch.ts";
import type { BackendName } from "../../backend/names.ts";
import { withBackend } from "../../backend/policy.ts";
import { keysOf } from "../../core/records.ts";
import { tupleOf } from "../../core/tuples.ts";
import { adjacentAxis } from "../../tensor/adjacent.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { denseStrides, elementCount } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { full } from "../creation/full.ts";
import { grad } from "../gradient/backward.ts";
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch users know it by this name
import { Function, type FunctionContext } from "../gradient/function.ts";
import { expand } from "../view/expand.ts";
import { attentionBackward, attentionForward } from "./passes.ts";
import type { AttentionAttributes, InputName, OutputName } from "./problem.ts";
import { unfusedAttention } from "./unfused.ts";

/** A call's arguments besides its tensors. */
export interface FusedCall {
  readonly attributes: AttentionAttributes;
  /** The backend that both passes try first; undefined: the current one. */
  readonly backend: BackendName | undefined;
}

const on = <Result>({ backend }: FusedCall, body: () => Result): Result =>
  backend === undefined ? body() : withBackend(backend, body);

/** Computes `out`, and the statistics among the call's outputs, without recording a gradient. */
export function fusedForward(call: FusedCall, inputs: readonly Tensor[]): Tensor[] {
  const [q, , v] = tupleOf(inputs, 3);
  const rows = q.shape.slice(0, 3);
  const shape = [...rows, v.shape[3]];
  const statistic = { shape: rows, dtype: accumulationDType(q.dtype) };
  // Uses q's axis order, so that heads split from rows merge without a copy.
  const strides = q.isContiguous ? undefined : denseStrides(shape, q.strides);
  const specs = [{ shape, dtype: q.dtype, strides }, statistic, statistic].slice(0, call.attributes.outputs.length);
  return on(call, () => executeMany(attentionForward, inputs, specs, call.attributes));
}

/**
 * Attention with its gradient. It saves operands, results and the dropout key, but nothing as large as the scores.
 * Forward and backward may run on different backends.
 */
export class FlashAttention extends Function {
  /** Returns `out`, and `logSumExp` if the call has it. */
  static forward(context: FunctionContext, call: FusedCall, ...inputs: Tensor[]): Tensor[] {
    const results = fusedForward(call, inputs);
    context["call"] = call;
    context["results"] = new Set(call.attributes.inputs.filter((_, at) => inputs[at].edge !== null));
    context.saveForBackward(...inputs, ...results);
    return results.slice(0, 2); // only the backward needs logSumExpLow
  }

  static backward(context: FunctionContext, gradOut: Tensor | null, gradLogSumExp: Tensor | null): (Tensor | null)[] {
    const { attributes, backend } = context["call"] as FusedCall;
    const saved = context.savedTensors;
    const [, ...needs] = context.needsInputGrad;
    const outputs = outputsFor(attributes.inputs.filter((_, at) => needs[at]));
    const incoming: Partial<Record<InputName, Tensor>> = {
      gradOut: gradOut ?? zerosAs(saved[attributes.inputs.length]),
      ...(gradLogSumExp && { gradLogSumExp }),
    };
    const names = [...attributes.inputs, ...attributes.outputs, ...Object.keys(incoming)] as InputName[];
    const call = {
      attributes: { ...attributes, inputs: names, outputs },
      backend,
      results: context["results"] as ReadonlySet<InputName>,
    };
    const inputs = [...saved, ...Object.values(incoming)];
    const gradients = isGradEnabled() ? AttentionGradient.apply(call, ...inputs) : fusedBackward(call, inputs);
    return [null, ...attributes.inputs.map((name) => gradients[outputs.indexOf(gradientNames[name]!)] ?? null)];
  }
}

const gradientNames: Partial<Record<InputName, OutputName>> = {
  q: "gradQ",
  k: "gradK",
  v: "gradV",
  bias: "gradBias",
  sinks: "gradSinks",
};

/** Returns the names of the gradients to compute; those of k and v are computed together. */
function outputsFor(needed: readonly InputName[]): OutputName[] {
  const names = needed.includes("k") || needed.includes("v") ? (["k", "v", ...needed] as const) : needed;
  const gradients = new Set(names.map((name) => gradientNames[name]));
  return Object.values(gradientNames).filter((name) => gradients.has(name));
}

/** Returns zeros of a tensor's shape that use the memory of one element. */
const zerosAs = ({ shape, dtype }: Tensor): Tensor => expand(full([], 0, { dtype }), shape);

interface GradientCall extends FusedCall {
  /**
   * Operands that are results of operations or views. Their gradients get the operand's layout, so that the next
   * backward step reads them without a copy; gradients of leaves are row-major.
   */
  readonly results: ReadonlySet<InputName>;
}

/** Computes the gradients among the call's outputs, without recording. */
function fusedBackward(call: GradientCall, inputs: readonly Tensor[]): Tensor[] {
  const { attributes, results } = call;
  const sources = attributes.outputs.map(sourceOf);
  const tensors = sources.map((name) => inputs[attributes.inputs.indexOf(name)]);
  const specs =
    (sources.every((name) => results.has(name)) && adjacentSpecs(tensors)) ||
    sources.map((name, at) => specOf(tensors[at], results.has(name)));
  return on(call, () => executeMany(attentionBackward, inputs, specs, attributes));
}

/**
 * The backward pass as an autograd function, so that it is differentiable. Its gradients compute all scores at once.
 */
class AttentionGradient extends Function {
  static forward(context: FunctionContext, call: GradientCall, ...inputs: Tensor[]): Tensor[] {
    context["attributes"] = call.attributes;
    context.saveForBackward(...inputs);
    return fusedBackward(call, inputs);
  }

  static backward(context: FunctionContext, ...incoming: (Tensor | null)[]): (Tensor | null)[] {
    if (isGradEnabled())
      throw new AutogradError(
        "flashAttention",
        "thirdOrder",
        'third-order gradients are not supported by fused attention. Pass { path: "unfused" }.',
      );
    const attributes = context["attributes"] as AttentionAttributes;
    return [null, ...enableGrad(() => secondGradients(attributes, context.savedTensors, incoming))];
  }
}

const specOf = ({ shape, dtype, strides }: Tensor, inItsOrder: boolean): OutputSpec => ({
  shape,
  dtype,
  strides: inItsOrder ? denseStrides(shape, strides) : undefined,
});

/**
 * Returns gradients as slices of one block if q, k and v are slices of one tensor, so that joining them copies nothing.
 */
function adjacentSpecs(tensors: readonly Tensor[]): OutputSpec[] | undefined {
  const axis = adjacentAxis(tensors);
  if (axis === undefined || tensors.length === 1) return undefined;
  const [{ shape, strides: like, dtype }] = tupleOf(tensors, 1);
  const size = tensors.reduce((sum, tensor) => sum + tensor.shape[axis], 0);
  const whole = shape.with(axis, size);
  const strides = denseStrides(whole, like);
  const block = { elements: elementCount(whole) };
  let start = 0;
  return tensors.map((tensor) => {
    const offset = start * strides[axis];
    start += tensor.shape[axis];
    return { shape: tensor.shape, dtype, strides, blockSlice: { block, offset } };
  });
}

const sourceOf = (output: OutputName): InputName =>
  keysOf(gradientNames).find((name) => gradientNames[name] === output)!;

/**
 * Returns second-order gradients for each input of a backward, by two backward passes over the graph of unfused
 * attention.
 */
function secondGradients(
  attributes: AttentionAttributes,
  inputs: readonly Tensor[],
  incoming: readonly (Tensor | null)[],
): (Tensor | null)[] {
  const variable = new Map(attributes.inputs.map((name, at) => [name, leafOf(name, inputs[at])]));
  const forward = attributes.inputs.filter((name) => !backwardInputs.has(name));
  const gradLogSumExp = variable.get("gradLogSumExp");
  const { out, logSumExp } = unfusedAttention(
    { ...attributes, inputs: forward, outputs: gradLogSumExp ? ["out", "logSumExp"] : ["out"] },
    forward.map((name) => variable.get(name)!),
  );
  const roots = gradLogSumExp ? [out, logSumExp!] : [out];
  const gradOutputs = [variable.get("gradOut")!, ...(gradLogSumExp ? [gradLogSumExp] : [])];
  const sources = attributes.outputs.map((name) => variable.get(sourceOf(name))!);
  const first = grad(roots, sources, { gradOutputs, createGraph: true, allowUnused: true });
  const reached = [...first.keys()].filter((at) => first[at]?.requiresGrad && incoming[at]);
  const leaves = [...variable.values()].filter(({ requiresGrad }) => requiresGrad);
  const second = grad(
    reached.map((at) => first[at]),
    leaves,
    { gradOutputs: reached.map((at) => incoming[at]!), allowUnused: true },
  );
  return attributes.inputs.map((name) => second[leaves.indexOf(variable.get(name)!)] ?? null);
}

const backwardInputs: ReadonlySet<InputName> = new Set([
  "out",
  "logSumExp",
  "logSumExpLow",
  "gradOut",
  "gradLogSumExp",
] as const);
const differentiable: ReadonlySet<InputName> = new Set([
  ...(["q", "k", "v", "bias", "sinks", "gradOut", "gradLogSumExp"] as const),
]);

/** Returns the same elements as a new leaf. */
function leafOf(name: InputName, { storage, dtype, shape, strides, offset }: Tensor): Tensor {
  const leaf = new Tensor(storage, dtype, shape, strides, offset);
  leaf.requiresGrad = differentiable.has(name);
  return leaf;
}
