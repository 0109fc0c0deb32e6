/** The convolutions of an {@link RtDetr} model that combine levels. */
import { lastElement } from "../../../../core/collections.ts";
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { interpolate } from "../../../../ops/picture/interpolate.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Module } from "../../../layers/module.ts";
import { activations } from "../../decoder/feed_forward.ts";
import { NormedConvolution } from "../resnet/resnet.ts";
import type { RtDetrDescription } from "./description.ts";

type Sizes = Pick<RtDetrDescription, "encoderWidth" | "activation" | "expansion" | "levels">;

/** Computes activation(wide(x) + narrow(x)), with filters of 3 x 3 and of one place: RepVGG's block. */
export class RepVggBlock extends Module<[x: Tensor], Tensor> {
  readonly wide: NormedConvolution;
  readonly narrow: NormedConvolution;
  readonly #activation: Sizes["activation"];

  constructor(width: number, activation: Sizes["activation"], options: LayerOptions) {
    super();
    this.#activation = activation;
    this.wide = new NormedConvolution(width, width, { ...options, kernel: 3 });
    this.narrow = new NormedConvolution(width, width, { ...options, kernel: 1 });
  }

  /** @param x [batch, width, rows, columns] @returns the same shape */
  override forward(x: Tensor): Tensor {
    return activations[this.#activation](add(this.wide.forward(x), this.narrow.forward(x)));
  }
}

/**
 * Combines two concatenated levels: last(blocks(first(x)) + second(x)), with activations after `first`, `second` and
 * `last`.
 *
 * | parameter | shape |
 * |---|---|
 * | `first. …`, `second. …` | see {@link NormedConvolution}: [inner, 2 · width, 1, 1] |
 * | `blocks.0. …` | see {@link RepVggBlock}; there are three |
 * | `last. …` | [width, inner, 1, 1]; null if the widths are equal |
 */
export class CrossStageLayer extends Module<[x: Tensor], Tensor> {
  readonly first: NormedConvolution;
  readonly second: NormedConvolution;
  readonly blocks: readonly RepVggBlock[];
  readonly last: NormedConvolution | null;
  readonly #activation: Sizes["activation"];

  constructor({ encoderWidth: width, activation, expansion }: Sizes, options: LayerOptions) {
    super();
    const shared = layerOptions(options);
    const inner = Math.trunc(width * expansion);
    const of = (inputs: number, outputs: number) => new NormedConvolution(inputs, outputs, { ...shared, kernel: 1 });
    this.#activation = activation;
    this.first = of(2 * width, inner);
    this.second = of(2 * width, inner);
    this.blocks = Array.from({ length: 3 }, () => new RepVggBlock(inner, activation, shared));
    this.last = inner === width ? null : of(inner, width);
  }

  /** @param x [batch, 2 · width, rows, columns] @returns [batch, width, rows, columns] */
  override forward(x: Tensor): Tensor {
    const activate = activations[this.#activation];
    return tidy(() => {
      const first = this.blocks.reduce<Tensor>((y, block) => block.forward(y), activate(this.first.forward(x)));
      const sum = add(first, activate(this.second.forward(x)));
      return this.last ? activate(this.last.forward(sum)) : sum;
    });
  }
}

/**
 * Combines levels from the coarsest to the finest, and back.
 *
 * | parameter | shape |
 * |---|---|
 * | `lateral.0. …`, `down.0. …` | see {@link CrossStageLayer} for `finer.0. …`, `coarser.0. …` |
 */
export class Pyramid extends Module<[levels: readonly Tensor[]], Tensor[]> {
  readonly lateral: readonly NormedConvolution[];
  readonly finer: readonly CrossStageLayer[];
  readonly down: readonly NormedConvolution[];
  readonly coarser: readonly CrossStageLayer[];
  readonly #activation: Sizes["activation"];

  constructor(description: Sizes, options: LayerOptions) {
    super();
    const { encoderWidth: width, levels, activation } = description;
    const shared = layerOptions(options);
    const each = <T>(make: () => T): T[] => levels.slice(1).map(make);
    this.#activation = activation;
    this.lateral = each(() => new NormedConvolution(width, width, { ...shared, kernel: 1 }));
    this.finer = each(() => new CrossStageLayer(description, shared));
    this.down = each(() => new NormedConvolution(width, width, { ...shared, kernel: 3, stride: 2 }));
    this.coarser = each(() => new CrossStageLayer(description, shared));
  }

  /** @param levels [batch, width, …], finest first, each half as large as the one before @returns the same shapes */
  override forward(levels: readonly Tensor[]): Tensor[] {
    const activate = activations[this.#activation];
    const found = [lastElement(levels)];
    for (const [at, level] of levels.slice(0, -1).toReversed().entries()) {
      const lateral = activate(this.lateral[at].forward(found[0]));
      found[0] = lateral;
      const grown = interpolate(lateral, { scaleFactor: 2, mode: "nearest" });
      found.unshift(this.finer[at].forward(cat([grown, level], 1)));
    }
    const combined = [found[0]];
    for (const [at, level] of found.slice(1).entries()) {
      const smaller = activate(this.down[at].forward(lastElement(combined)));
      combined.push(this.coarser[at].forward(cat([smaller, level], 1)));
    }
    return combined;
  }
}
