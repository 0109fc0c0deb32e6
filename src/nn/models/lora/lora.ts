import { lastElement } from "../../../core/collections.ts";
import { ArgumentError } from "../../../core/errors.ts";
import { aNumber, instanceOf, listOf, text } from "../../../core/kinds.ts";
import { positive } from "../../../core/options.ts";
import { type Kind, named, operand, parameters, required } from "../../../core/parameters.ts";
import type { Generator } from "../../../random/generator.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { aGenerator, probability, size } from "../../layers/kinds.ts";
import { Linear } from "../../layers/linear.ts";
import type { Module } from "../../layers/module.ts";
import { QuantizedLinear } from "../../quantized/linear.ts";
import { LoraLinear } from "../../quantized/lora_linear.ts";
import { Decoder } from "../decoder/decoder.ts";
import { Encoder } from "../encoder/encoder.ts";
import { DualEncoder } from "../vision/dual_encoder.ts";
import { VisionEncoder } from "../vision/vision_encoder.ts";
import { VisionLanguageModel } from "../vision_language/model.ts";

/** Options of {@link lora}. */
export interface LoraOptions {
  /** The rank of the low-rank product that is added to each weight. */
  rank: number;
  /** The low-rank product is multiplied by alpha / rank. Default `rank`. */
  alpha?: number | undefined;
  /**
   * The layers to adapt, by the last part of their paths: `query`, `key`, `value`, `queryKeyValue`, `output`, `gate`,
   * `up`, `gateUp`, `down`. Default: `query` and `value`, or `queryKeyValue`.
   */
  targets?: readonly string[] | undefined;
  /** The dropout probability, in training, of the input of the low-rank product. Default 0. */
  dropout?: number | undefined;
  /** The random number generator for the initial weights. Default: the global one. */
  generator?: Generator | undefined;
}

/** Models that can be adapted. */
export type AdaptableModel = Decoder | Encoder | VisionEncoder | DualEncoder;

const isAdaptable = (value: unknown): value is AdaptableModel =>
  (value instanceof Decoder && (value.constructor === Decoder || value instanceof VisionLanguageModel)) ||
  [Encoder, VisionEncoder, DualEncoder].some((kind) => value instanceof kind);

/** @internal Presets are rejected: the public types of their layers do not include adapters. */
export const aLoadedModel: Kind<AdaptableModel> = {
  ...instanceOf(Decoder, "a model that loadModel returned"),
  parse: (value) => (isAdaptable(value) ? value : undefined),
};

const usualTargets = ["query", "value", "queryKeyValue"];

const loraParameters = parameters("lora", {
  model: operand(aLoadedModel),
  rank: required(size),
  alpha: named(aNumber(positive)),
  targets: named(listOf(text, "a list of names"), usualTargets),
  dropout: named(probability, 0),
  generator: named(aGenerator),
});

/**
 * Adds trained low-rank matrices to linear layers of a model, in place (LoRA). Everything else is frozen. Quantized
 * layers are supported (QLoRA); experts of a mixture are not. In an encoder, the head is frozen too.
 *
 * @param model a language model, with or without images, or an encoder of texts, images or both, that `loadModel`
 * returned
 *
 * @example
 * const adapter = nn.lora(model, { rank: 8, alpha: 16 });
 * const optimizer = new optim.AdamW(adapter.parameters(), { lr: 1e-4 });
 * // … train, then
 * await nn.saveLora(adapter, "adapter");
 *
 * @throws {ArgumentError} for targets that the model does not have, a model that already has an adapter, and a `GPT` or
 * `Llama` that `loadModel` did not return.
 */
export function lora<M extends AdaptableModel>(model: M, options: LoraOptions): LoraAdapter<M>;
export function lora(...values: unknown[]): LoraAdapter<AdaptableModel> {
  const { model, rank, alpha = rank, targets, dropout, generator } = loraParameters(values);
  const layers = linearLayers(model);
  const isTarget = (path: string) => targets.includes(lastElement(path.split(".")));
  const chosen = new Map([...layers].filter(([path]) => isTarget(path)));
  const has = new Set([...layers.keys()].map((path) => path.split(".").at(-1)));
  const unknown = targets === usualTargets ? undefined : targets.find((target) => !has.has(target));
  if (unknown !== undefined || chosen.size === 0)
    throw new ArgumentError(
      "lora",
      "unknownTarget",
      `expected targets among ${[...has].join(", ")}, got ${unknown === undefined ? "none" : JSON.stringify(unknown)}`,
    );
  const options = { rank, scale: alpha / rank, dropout, generator };
  const settings = { rank, alpha, dropout, baseModel: model.origin };
  return new LoraAdapter(model, settings, layersOf(model, chosen, options));
}

/** @internal Returns the linear layers of a model's blocks by path, except experts. @throws {ArgumentError} */
export function linearLayers(model: AdaptableModel): Map<string, Linear | QuantizedLinear> {
  const found = new Map<string, Linear | QuantizedLinear>();
  for (const [path, module] of model.namedModules()) {
    if (module instanceof LoraLinear)
      throw new ArgumentError(
        "lora",
        "adaptedAlready",
        `expected a model without adapters, got one at ${path}; remove() it`,
      );
    const isLinear = module instanceof Linear || module instanceof QuantizedLinear;
    if (
      isLinear &&
      /^((decoder|vision|text|tower|tower\.encoder)\.)?blocks\./.test(path) &&
      !/\.experts\.|\.router$/.test(path)
    )
      found.set(path, module);
  }
  return found;
}

/** @internal Creates the adapted layers by path. */
export function layersOf(
  model: AdaptableModel,
  chosen: ReadonlyMap<string, Linear | QuantizedLinear>,
  options: ConstructorParameters<typeof LoraLinear>[1],
): Map<string, LoraLinear> {
  const layers = new Map([...chosen].map(([path, base]) => [path, new LoraLinear(base, options)] as const));
  for (const layer of layers.values()) layer.train(model.training);
  return layers;
}

/** The settings of an adapter. */
type AdapterSettings = Pick<LoraAdapter, "rank" | "alpha" | "dropout" | "baseModel">;

/** An adapter that {@link lora} added to a model. */
export class LoraAdapter<M extends AdaptableModel = Decoder> {
  readonly model: M;
  readonly rank: number;
  readonly alpha: number;
  readonly dropout: number;
  /** The name or path of the adapted model: PEFT's `base_model_name_or_path`. Undefined if unknown. */
  readonly baseModel: string | undefined;
  /** The adapted layers by their paths in the model. */
  readonly layers: ReadonlyMap<string, LoraLinear>;
  #state: "active" | "merged" | "removed" = "active";
  /** The parameters that were trainable before the adapter was added. */
  readonly #thawed: readonly Tensor[];

  /** @internal */
  constructor(model: M, { rank, alpha, dropout, baseModel }: AdapterSettings, layers: ReadonlyMap<string, LoraLinear>) {
    this.model = model;
    this.rank = rank;
    this.alpha = alpha;
    this.dropout = dropout;
    this.baseModel = baseModel;
    this.layers = layers;
    this.#thawed = model.parameters();
    for (const parameter of this.#thawed) parameter.requiresGrad = false;
    this.#place((layer) => layer);
  }

  /** Returns the trained tensors. */
  parameters(): Tensor[] {
    return [...this.namedParameters().values()];
  }

  /** Returns the trained tensors by their paths in the model: `blocks.0.attention.query.down.weight`. */
  namedParameters(): Map<string, Tensor> {
    const named = (path: string, { down, up }: LoraLinear) =>
      [
        [`${path}.down.weight`, down.weight],
        [`${path}.up.weight`, up.weight],
      ] as const;
    return new Map([...this.layers].flatMap(([path, layer]) => named(path, layer)));
  }

  /**
   * Replaces adapted layers by plain layers with merged weights, so that the model runs at its original speed.
   * Quantized layers become float32 layers. The original weights are kept in memory.
   *
   * @throws {ArgumentError} if the adapter is merged or removed.
   */
  merge(): void {
    this.#check("merge", "active");
    this.#place((layer) => layer.merged());
    this.#state = "merged";
  }

  /**
   * Undoes {@link merge} exactly: the original weights were kept. @throws {ArgumentError} if the adapter is not merged.
   */
  unmerge(): void {
    this.#check("unmerge", "merged");
    this.#place((layer) => layer);
    this.#state = "active";
  }

  /** Removes the adapter. The model is as it was before, and its parameters can be trained again. */
  remove(): void {
    if (this.#state === "removed") return;
    this.#place(({ base }) => base);
    for (const parameter of this.#thawed) parameter.requiresGrad = true;
    this.#state = "removed";
  }

  #place(choose: (layer: LoraLinear) => Module): void {
    const modules = this.model.namedModules();
    for (const [path, layer] of this.layers) {
      const [, above, name] = /^(.*)\.([^.]+)$/.exec(path)!;
      Reflect.set(modules.get(above)!, name, choose(layer));
    }
  }

  #check(operation: string, expected: "active" | "merged"): void {
    if (this.#state === expected) return;
    throw new ArgumentError(
      `LoraAdapter.${operation}`,
      "wrongState",
      `expected the adapter to be ${expected}, but it is ${this.#state}`,
    );
  }
}
