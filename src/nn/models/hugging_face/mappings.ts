/** Maps Hugging Face's tensor names to a model's parameters, for loading and saving. */
import { noGrad } from "../../../autograd/modes.ts";
import { describeValue } from "../../../core/describe.ts";
import { ArgumentError } from "../../../core/errors.ts";
import type { SafetensorsReader } from "../../../io/safetensors/file.ts";
import { QuantizedTensor } from "../../../quant/quantized_tensor.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Module } from "../../layers/module.ts";
import { type LoadOptions, type LoadReport, loadInto, type StateDict } from "../../layers/state_dict.ts";

/** Maps a tensor of a checkpoint to a parameter, or to a part of one. */
export interface TensorMapping {
  /** The tensor's names in checkpoints. The first is used for writing. */
  readonly names: readonly string[];
  /** The name of the parameter in the model. */
  readonly parameter: string;
  /** Returns the view of the parameter that equals the checkpoint's tensor. Default: the whole parameter. */
  readonly view?: ((parameter: Tensor) => Tensor) | undefined;
}

/** Tensors that are loaded on demand, such as an open safetensors file. */
export type TensorSource = Pick<SafetensorsReader, "names" | "tensor">;

const isSource = (tensors: Readonly<StateDict> | TensorSource): tensors is TensorSource =>
  Array.isArray(tensors.names) && typeof tensors.tensor === "function";

/** Views of a layer's weight and bias for {@link TensorMapping}. */
type LayerViews = Readonly<Partial<Record<"weight" | "bias", TensorMapping["view"]>>>;

/**
 * Returns mappings of a layer's weight, and of its bias if it has one.
 *
 * @param names the layer's names in checkpoints
 */
export function layerMappings(
  module: Module,
  layer: string,
  names: readonly string[],
  views: LayerViews = {},
): TensorMapping[] {
  const target = module.namedModules().get(layer);
  const hasBias = target !== undefined && "bias" in target && target.bias !== null;
  return (["weight", "bias"] as const)
    .filter((end) => end === "weight" || hasBias)
    .map((end) => ({
      names: names.map((name) => `${name}.${end}`),
      parameter: `${layer}.${end}`,
      view: views[end],
    }));
}

/** @internal Returns views of the parameters by the checkpoint's names. */
export function huggingFaceState(module: Module, mappings: readonly TensorMapping[]): StateDict {
  checkUnquantized(module);
  const state = module.stateDict();
  return Object.fromEntries(
    mappings.map(({ names, parameter, view = (x) => x }) => [names[0], noGrad(() => view(state[parameter]))]),
  );
}

/** @throws {ArgumentError} `quantizedModel`: views of quantized weights do not exist. */
function checkUnquantized(module: Module): void {
  const quantized = Object.entries(module.quantizedState()).find(([, value]) => QuantizedTensor.isQuantized(value));
  if (quantized === undefined) return;
  throw new ArgumentError(
    module.constructor.name,
    "quantizedModel",
    `expected a model without quantized weights, got ${quantized[0]}; save quantizedState() instead`,
  );
}

/** Constant masks and angle tables that older versions of `transformers` saved. They are ignored. */
const ignored = /\.attn\.(masked_)?bias$|\.rotary_emb\.inv_freq$/;

/**
 * @internal Loads tensors by the checkpoint's names. If anything does not match, nothing is loaded.
 * @throws {StateDictError}
 */
export function loadMapped(
  module: Module,
  mappings: readonly TensorMapping[],
  tensors: Readonly<StateDict> | TensorSource,
  options: LoadOptions,
): LoadReport {
  if (typeof tensors !== "object" || tensors === null)
    throw new ArgumentError(
      `${module.constructor.name}.loadHuggingFace`,
      "invalidOperand",
      `expected tensors by name or an open safetensors file, got ${describeValue(tensors)}`,
    );
  const views = huggingFaceState(module, mappings);
  const targets = new Map(mappings.map(({ names }) => [views[names[0]], names]));
  const fromFile = isSource(tensors);
  const names = fromFile ? tensors.names : Object.keys(tensors);
  const read = (name: string): Tensor => (fromFile ? tensors.tensor(name) : tensors[name]);
  const state = Object.fromEntries(names.filter((name) => !ignored.test(name)).map((name) => [name, read(name)]));
  return loadInto(module.constructor.name, targets, state, { ...options, convert: true, consume: fromFile });
}
