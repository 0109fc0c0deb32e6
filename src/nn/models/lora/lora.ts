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

/** Options of {@link lora}. */
export interface LoraOptions {
  /** The rank of what is added to each weight. */
  rank: number;
  /** What is added is multiplied with alpha / rank. Default `rank`. */
  alpha?: number | undefined;
  /**
   * The layers, by the last part of their paths: `query`, `key`, `value`, `queryKeyValue`, `output`, `gate`, `up`,
   * `gateUp`, `down`. Default: queries and values, or what is fused with them.
   */
  targets?: readonly string[] | undefined;
  /** The dropout probability, in training, of what the small matrices get. Default 0. */
  dropout?: number | undefined;
  /** Of the initial values. Default: the global one. */
  generator?: Generator | undefined;
}

/** @internal Presets are rejected: the types of their layers, which are public, do not include adapters. */
export const aLoadedModel: Kind<Decoder> = {
  ...instanceOf(Decoder, "a model of loadModel"),
  parse: (value) => (value instanceof Decoder && value.constructor === Decoder ? value : undefined),
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
 * Adapts a model by small matrices beside its linear layers (LoRA), in place: they alone are trained, and everything
 * else is frozen. Quantised layers are adapted too (QLoRA). Experts are not.
 *
 * @param model what `loadModel` returned
 *
 * @example
 * const adapter = nn.lora(model, { rank: 8, alpha: 16 });
 * const optimizer = new optim.AdamW(adapter.parameters(), { lr: 1e-4 });
 * // … train, then
 * await nn.saveLora(adapter, "adapter");
 *
 * @throws {ArgumentError} for targets that the model does not have, a model that is adapted already, and a `GPT` or
 * `Llama` that `loadModel` did not return.
 */
export function lora(model: Decoder, options: LoraOptions): LoraAdapter;
export function lora(...values: unknown[]): LoraAdapter {
  const { model, rank, alpha = rank, targets, dropout, generator } = loraParameters(values);
  const layers = linearLayers(model);
  const isTarget = (path: string) => targets.includes(path.split(".").at(-1)!);
  const chosen = new Map([...layers].filter(([path]) => isTarget(path)));
  const has = new Set([...layers.keys()].map((path) => path.split(".").at(-1)!));
  const unknown = targets === usualTargets ? undefined : targets.find((own) => !has.has(own));
  if (unknown !== undefined || chosen.size === 0)
    throw new ArgumentError(
      "lora",
      "unknownTarget",
      `expected targets among ${[...has].join(", ")}, got ${unknown === undefined ? "none" : JSON.stringify(unknown)}`,
    );
  const options = { rank, scale: alpha / rank, dropout, generator };
  const own = { rank, alpha, dropout, baseModel: model.origin };
  return new LoraAdapter(model, own, layersOf(model, chosen, options));
}

/** @internal The linear layers of a model's blocks by path, without those of experts. @throws {ArgumentError} */
export function linearLayers(model: Decoder): Map<string, Linear | QuantizedLinear> {
  const found = new Map<string, Linear | QuantizedLinear>();
  for (const [path, module] of model.namedModules()) {
    if (module instanceof LoraLinear)
      throw new ArgumentError(
        "lora",
        "adaptedAlready",
        `expected a model without adapters, got one at ${path}; remove() it`,
      );
    const isLinear = module instanceof Linear || module instanceof QuantizedLinear;
    if (isLinear && path.startsWith("blocks.") && !/\.experts\.|\.router$/.test(path)) found.set(path, module);
  }
  return found;
}

/** @internal */
export function layersOf(
  model: Decoder,
  chosen: ReadonlyMap<string, Linear | QuantizedLinear>,
  options: ConstructorParameters<typeof LoraLinear>[1],
): Map<string, LoraLinear> {
  const layers = new Map([...chosen].map(([path, base]) => [path, new LoraLinear(base, options)] as const));
  for (const layer of layers.values()) layer.train(model.training);
  return layers;
}

/** What an adapter is made of besides its layers. */
type AdapterSettings = Pick<LoraAdapter, "rank" | "alpha" | "dropout" | "baseModel">;

/** What {@link lora} adds to a model. */
export class LoraAdapter {
  readonly model: Decoder;
  readonly rank: number;
  readonly alpha: number;
  readonly dropout: number;
  /** The model that it adapts, a name or a path: PEFT's `base_model_name_or_path`. Undefined if nothing says it. */
  readonly baseModel: string | undefined;
  /** By their paths in the model. */
  readonly layers: ReadonlyMap<string, LoraLinear>;
  #state: "active" | "merged" | "removed" = "active";
  /** What was trained before. */
  readonly #thawed: readonly Tensor[];

  /** @internal */
  constructor(
    model: Decoder,
    { rank, alpha, dropout, baseModel }: AdapterSettings,
    layers: ReadonlyMap<string, LoraLinear>,
  ) {
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

  /** The tensors that are trained. */
  parameters(): Tensor[] {
    return [...this.namedParameters().values()];
  }

  /** The tensors that are trained by their paths in the model: `blocks.0.attention.query.down.weight`. */
  namedParameters(): Map<string, Tensor> {
    const named = (path: string, { down, up }: LoraLinear) =>
      [
        [`${path}.down.weight`, down.weight],
        [`${path}.up.weight`, up.weight],
      ] as const;
    return new Map([...this.layers].flatMap(([path, layer]) => named(path, layer)));
  }

  /**
   * Puts plain layers with the sums of the weights in place of adapted ones: as fast as the model was before. Quantised
   * layers become layers in float32. The weights of the model are kept beside them.
   *
   * @throws {ArgumentError} if it is merged or removed.
   */
  merge(): void {
    this.#check("merge", "active");
    this.#place((layer) => layer.merged());
    this.#state = "merged";
  }

  /** Undoes {@link merge}: bit by bit what was there before. @throws {ArgumentError} if it is not merged. */
  unmerge(): void {
    this.#check("unmerge", "merged");
    this.#place((layer) => layer);
    this.#state = "active";
  }

  /** Removes the adapter: the model is what it was before, and can be trained again. */
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
      Reflect.set(modules.get(above!)!, name!, choose(layer));
    }
  }

  #check(operation: string, expected: "active" | "merged"): void {
    if (this.#state === expected) return;
    throw new ArgumentError(
      `LoraAdapter.${operation}`,
      "wrongState",
      `expected an adapter that is ${expected}, got one that is ${this.#state}`,
    );
  }
}
