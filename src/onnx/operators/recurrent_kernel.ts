/** Recurrent layers whose steps one kernel computes: with the usual activations, without peepholes and clipping. */
import { needsGradient } from "../../autograd/record.ts";
import * as ops from "../../ops/index.ts";
import type { RecurrentKind } from "../../ops/recurrent/kinds.ts";
import { hasRecurrentKernel, recurrent } from "../../ops/recurrent/recurrent.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { keep, tidy } from "../../tensor/tidy.ts";
import type { Call } from "../call.ts";

/** The weights of one direction, in the standard's order of gates. */
export interface DirectionWeights {
  /** [gates · size, inputs] */
  readonly w: Tensor;
  /** [gates · size, size] */
  readonly r: Tensor;
  /** [2 · gates · size]: for the inputs, then for the state. */
  readonly bias: Tensor | undefined;
}

/**
 * The kernel's order of gates, as indices into the standard's order: for LSTM ifco instead of iofc, for GRU rzh instead
 * of zrh.
 */
const orders = { lstm: [0, 2, 3, 1], gru: [1, 0, 2], tanh: [0], relu: [0] } as const;

/**
 * Returns the kernel's kind for a layer, by the operator and the names of the activations of a direction. Undefined if
 * no kernel supports the layer's attributes.
 */
export function kernelKind(call: Call, operator: "LSTM" | "GRU" | "RNN"): RecurrentKind | undefined {
  const { attributes } = call;
  if (attributes.has("clip") || attributes.flag("input_forget") || call.optional(4) || call.optional(7))
    return undefined;
  const names = attributes.texts("activations")?.map((name) => name.toLowerCase());
  const isUsual = (usual: readonly string[]) =>
    names === undefined || names.every((name, at) => name === usual[at % usual.length]);
  if (operator === "LSTM") return isUsual(["sigmoid", "tanh", "tanh"]) ? "lstm" : undefined;
  if (operator === "GRU")
    return attributes.flag("linear_before_reset") && isUsual(["sigmoid", "tanh"]) ? "gru" : undefined;
  return isUsual(["tanh"]) ? "tanh" : isUsual(["relu"]) ? "relu" : undefined;
}

interface Prepared {
  readonly weights: DirectionWeights;
  readonly versions: string;
  readonly input: Tensor;
  readonly state: Tensor;
  readonly inputBias: Tensor | undefined;
  readonly stateBias: Tensor | undefined;
}

/**
 * Caches the weights in the kernel's order, keyed by the tensor of all directions. An entry lives as long as its key.
 */
const prepared = new WeakMap<Tensor, Prepared[]>();

const versionsOf = ({ w, r, bias }: DirectionWeights): string =>
  [w, r, bias].map((x) => x && `${x.storage.version} ${x.offset}`).join();
const isSame = (a: DirectionWeights, b: DirectionWeights): boolean =>
  a.w.storage === b.w.storage && a.r.storage === b.r.storage && a.bias?.storage === b.bias?.storage;

function prepare(kind: RecurrentKind, weights: DirectionWeights, owner: Tensor, at: number): Prepared {
  const versions = versionsOf(weights);
  const list = prepared.get(owner) ?? [];
  prepared.set(owner, list);
  const existing = list[at];
  if (existing && existing.versions === versions && isSame(existing.weights, weights)) return existing;
  const [input, state, inputBias, stateBias] = tidy(() => inOrder(kind, weights).map((x) => x && keep(ops.clone(x))));
  const made = { weights, versions, input: input!, state: state!, inputBias, stateBias };
  list[at] = made;
  return made;
}

function inOrder(kind: RecurrentKind, { w, r, bias }: DirectionWeights): (Tensor | undefined)[] {
  const size = r.shape[1];
  const order = orders[kind];
  const ordered = (x: Tensor): Tensor =>
    order.length === 1 ? x : ops.cat(order.map((gate) => ops.narrow(x, 0, gate * size, size)));
  const half = order.length * size;
  const [first, second] = bias ? [0, half].map((start) => ordered(ops.narrow(bias, 0, start, half))) : [];
  const isGru = kind === "gru";
  return [ordered(w), ordered(r), isGru || !first ? first : ops.add(first, second), isGru ? second : undefined];
}

/**
 * Runs one direction over x [steps, batch, inputs].
 *
 * @param owner the tensor of all directions' weights, of which this is number `at`
 * @returns the states of all steps [steps, batch, size] and the last cell state; undefined if the kernel can't run
 */
export function runKernel(
  kind: RecurrentKind,
  x: Tensor,
  weights: DirectionWeights,
  initial: readonly Tensor[],
  { owner, at, isReversed }: { readonly owner: Tensor; readonly at: number; readonly isReversed: boolean },
): { readonly output: Tensor; readonly cell: Tensor | undefined } | undefined {
  const [hidden, cell] = initial as [Tensor, Tensor | undefined];
  const given = { products: x, weight: weights.r, bias: weights.bias, hidden, cell };
  if (x.shape[0] === 0 || !hasRecurrentKernel(given)) return undefined;
  const { r, w, bias } = weights;
  const operands = [x, w, r, ...initial].filter((operand) => operand !== undefined);
  // the weights in the kernel's order are kept, without a graph
  if (needsGradient(...operands, ...(bias ? [bias] : []))) return undefined;
  const { input, state, inputBias, stateBias } = prepare(kind, weights, owner, at);
  const products = ops.linear(x, input, inputBias);
  return recurrent({ products, weight: state, bias: stateBias, hidden, cell }, { kind, isReversed });
}
