/** How tensors by Hugging Face's names lie in a model's parameters: one table for loading and for saving. */
import { noGrad } from "../../autograd/modes.ts";
import type { SafetensorsReader } from "../../io/safetensors/file.ts";
import { transpose } from "../../ops/view/permute.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Module } from "../module.ts";
import { type LoadOptions, type LoadReport, loadInto, type StateDict } from "../state_dict.ts";

/** Where one tensor of a checkpoint lies. */
export interface Place {
  /** The names that checkpoints have for it; the first is what is written. */
  readonly names: readonly string[];
  /** Ours of the parameter. */
  readonly parameter: string;
  /** The part of the parameter, as the checkpoint has it. Default: all of it, as it is. */
  readonly view?: ((parameter: Tensor) => Tensor) | undefined;
}

/** Tensors that are made when they are asked for: an open safetensors file is one. */
export type TensorSource = Pick<SafetensorsReader, "names" | "tensor">;

const isSource = (tensors: Readonly<StateDict> | TensorSource): tensors is TensorSource =>
  Array.isArray(tensors.names) && typeof tensors.tensor === "function";

/** How a checkpoint has the weight and the bias of a layer. */
export type LayerViews = Readonly<Partial<Record<"weight" | "bias", Place["view"]>>>;

/** Weights [outputs, inputs] as GPT-2's `Conv1D` has them: [inputs, outputs]. */
export const conv1D: LayerViews = { weight: (weight) => transpose(weight, 0, 1) };

/** Weight and bias of a layer, by the names that a layer has there; the bias where ours has one. */
export function layerPlaces(module: Module, layer: string, names: readonly string[], views: LayerViews = {}): Place[] {
  const ours = module.namedModules().get(layer);
  const hasBias = ours !== undefined && "bias" in ours && ours.bias !== null;
  return (["weight", "bias"] as const)
    .filter((end) => end === "weight" || hasBias)
    .map((end) => ({
      names: names.map((name) => `${name}.${end}`),
      parameter: `${layer}.${end}`,
      view: views[end],
    }));
}

/** @internal The parts of parameters as checkpoints have them, by their names there. */
export function huggingFaceState(module: Module, places: readonly Place[]): StateDict {
  const state = module.stateDict();
  return Object.fromEntries(
    places.map(({ names, parameter, view = (x) => x }) => [names[0]!, noGrad(() => view(state[parameter]!))]),
  );
}

/** Names that older versions of `transformers` wrote and nobody needs: masks, and tables of angles. */
const needless = /\.attn\.(masked_)?bias$|\.rotary_emb\.inv_freq$/;

/** @internal Copies tensors to their places: all of them, or none. @throws {StateDictError} */
export function loadPlaces(
  module: Module,
  places: readonly Place[],
  tensors: Readonly<StateDict> | TensorSource,
  options: LoadOptions,
): LoadReport {
  const views = huggingFaceState(module, places);
  const targets = new Map(places.map(({ names }) => [views[names[0]!]!, names]));
  const fromFile = isSource(tensors);
  const names = fromFile ? tensors.names : Object.keys(tensors);
  const read = (name: string): Tensor => (fromFile ? tensors.tensor(name) : tensors[name]!);
  const state = Object.fromEntries(names.filter((name) => !needless.test(name)).map((name) => [name, read(name)]));
  return loadInto(module.constructor.name, targets, state, { ...options, convert: true, consume: fromFile });
}
