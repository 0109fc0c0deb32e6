/** Attention on the tape: what the forward keeps, and how gradients go back. */

import { enableGrad, isGradEnabled } from "../../autograd/modes.ts";
import { AutogradError } from "../../autograd/node.ts";
import { executeMany, type OutputSpec } from "../../backend/dispatch.ts";
import type { BackendName } from "../../backend/names.ts";
import { getBackend, withBackend } from "../../backend/policy.ts";
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

/** What a call is beside its tensors. */
export interface FusedCall {
  readonly attributes: AttentionAttributes;
  /** The backend that both passes try first; undefined: that of the moment. */
  readonly backend: BackendName | undefined;
}

const on = <Result>({ backend = getBackend() }: FusedCall, body: () => Result): Result => withBackend(backend, body);

/**
 * Attention with its gradient. It keeps its operands, its results and the key of its dropout: nothing that is as large
 * as the scores. Forward and backward may run on different backends.
 */
export class FlashAttention extends Function {
  /** Gives `out`, and `logSumExp` where the call has it. */
  static forward(context: FunctionContext, call: FusedCall, ...inputs: Tensor[]): Tensor[] {
    const [q, , v] = inputs as [Tensor, Tensor, Tensor];
    const rows = q.shape.slice(0, 3);
    const shape = [...rows, v.shape[3]!];
    const statistic = { shape: rows, dtype: accumulationDType(q.dtype) };
    // In the order of q, so that heads which were cut from rows join without a copy.
    const all = [{ shape, dtype: q.dtype, strides: denseStrides(shape, q.strides) }, statistic, statistic];
    const specs = all.slice(0, call.attributes.outputs.length);
    const results = on(call, () => executeMany(attentionForward, inputs, specs, call.attributes));
    context["call"] = call;
    context["results"] = new Set(call.attributes.inputs.filter((_, at) => inputs[at]!.edge !== null));
    context.saveForBackward(...inputs, ...results);
    return results.slice(0, 2); // the low part of the second is for the backward alone
  }

  static backward(context: FunctionContext, gradOut: Tensor | null, gradLogSumExp: Tensor | null): (Tensor | null)[] {
    const { attributes, backend } = context["call"] as FusedCall;
    const saved = context.savedTensors;
    const [, ...needs] = context.needsInputGrad;
    const outputs = outputsFor(attributes.inputs.filter((_, at) => needs[at]));
    const incoming: Partial<Record<InputName, Tensor>> = {
      gradOut: gradOut ?? zerosAs(saved[attributes.inputs.length]!),
      ...(gradLogSumExp && { gradLogSumExp }),
    };
    const names = [...attributes.inputs, ...attributes.outputs, ...Object.keys(incoming)] as InputName[];
    const call = {
      ...{ attributes: { ...attributes, inputs: names, outputs }, backend },
      results: context["results"] as ReadonlySet<InputName>,
    };
    const gradients = AttentionGradient.apply(call, ...saved, ...Object.values(incoming));
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

/** Gradients that a backward computes for what needs them: those of k and v together. */
function outputsFor(needed: readonly InputName[]): OutputName[] {
  const names = needed.includes("k") || needed.includes("v") ? (["k", "v", ...needed] as const) : needed;
  const gradients = new Set(names.map((name) => gradientNames[name]));
  return Object.values(gradientNames).filter((name) => gradients.has(name));
}

/** Zeros of a tensor's shape, in the memory of one element. */
const zerosAs = ({ shape, dtype }: Tensor): Tensor => expand(full([], 0, { dtype }), shape);

interface GradientCall extends FusedCall {
  /**
   * The operands that operations made, or views. Whoever made them reads gradients in their layout without a copy;
   * leaves keep theirs row-major.
   */
  readonly results: ReadonlySet<InputName>;
}

/** The gradients as a function of their own, so that they have gradients too: those go through all scores. */
class AttentionGradient extends Function {
  static forward(context: FunctionContext, call: GradientCall, ...inputs: Tensor[]): Tensor[] {
    const { attributes, results } = call;
    const sources = attributes.outputs.map(sourceOf);
    const tensors = sources.map((name) => inputs[attributes.inputs.indexOf(name)]!);
    const specs =
      (sources.every((name) => results.has(name)) && adjacentSpecs(tensors)) ||
      sources.map((name, at) => specOf(tensors[at]!, results.has(name)));
    context["attributes"] = attributes;
    context.saveForBackward(...inputs);
    return on(call, () => executeMany(attentionBackward, inputs, specs, attributes));
  }

  static backward(context: FunctionContext, ...incoming: (Tensor | null)[]): (Tensor | null)[] {
    if (isGradEnabled())
      throw new AutogradError(
        "flashAttention",
        "thirdOrder",
        'the gradients of its gradients have none of their own; { path: "unfused" } has gradients of every order',
      );
    const attributes = context["attributes"] as AttentionAttributes;
    return [null, ...enableGrad(() => secondGradients(attributes, context.savedTensors, incoming))];
  }
}

const specOf = ({ shape, dtype, strides }: Tensor, inItsOrder: boolean): OutputSpec => ({
  ...{ shape, dtype, strides: inItsOrder ? denseStrides(shape, strides) : undefined },
});

/** Where q, k and v were cut from one tensor, so will be their gradients, which then are its gradient as they lie. */
function adjacentSpecs(tensors: readonly Tensor[]): OutputSpec[] | undefined {
  const axis = adjacentAxis(tensors);
  if (axis === undefined || tensors.length === 1) return undefined;
  const [{ shape, strides: like, dtype }] = tensors as [Tensor];
  const size = tensors.reduce((sum, own) => sum + own.shape[axis]!, 0);
  const whole = shape.with(axis, size);
  const strides = denseStrides(whole, like);
  const block = { elements: elementCount(whole) };
  let start = 0;
  return tensors.map((own) => {
    const offset = start * strides[axis]!;
    start += own.shape[axis]!;
    return { shape: own.shape, dtype, strides, blockSlice: { block, offset } };
  });
}

const sourceOf = (output: OutputName): InputName =>
  (Object.keys(gradientNames) as InputName[]).find((name) => gradientNames[name] === output)!;

/**
 * Gradients of the gradients, for each input of a backward, by two passes over the graph of the unfused computation.
 */
function secondGradients(
  attributes: AttentionAttributes,
  inputs: readonly Tensor[],
  incoming: readonly (Tensor | null)[],
): (Tensor | null)[] {
  const variable = new Map(attributes.inputs.map((name, at) => [name, leafOf(name, inputs[at]!)]));
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
    reached.map((at) => first[at]!),
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

/** The same elements as a variable of its own. */
function leafOf(name: InputName, { storage, dtype, shape, strides, offset }: Tensor): Tensor {
  const leaf = new Tensor(storage, dtype, shape, strides, offset);
  leaf.requiresGrad = differentiable.has(name);
  return leaf;
}
