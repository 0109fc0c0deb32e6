/** A mixture of experts of a {@link Decoder}. */
import { noGrad } from "../../../autograd/modes.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { mul } from "../../../ops/elementwise/arithmetic.ts";
import { div } from "../../../ops/elementwise/division.ts";
import { indexSelect } from "../../../ops/indexing/gather.ts";
import { cat } from "../../../ops/join/cat.ts";
import { sum } from "../../../ops/reduction/sum.ts";
import { softmax } from "../../../ops/softmax/softmax.ts";
import { topk } from "../../../ops/sorting/sort.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import { unsqueeze } from "../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { ExpertsDescription } from "./description.ts";
import { DecoderFeedForward, type DecoderFeedForwardOptions } from "./feed_forward.ts";

/**
 * Computes y = Σ p[e] · expert[e](x) over the experts with the largest probabilities p = softmax(router(x)), which may
 * be divided by their sum. Each expert computes only the tokens that chose it. The choice is read back from the device.
 *
 * | parameter | shape |
 * |---|---|
 * | `router.weight` | [experts, width] |
 * | `experts.0. …` | see {@link DecoderFeedForward} |
 *
 * Source: A. Q. Jiang et al., "Mixtral of experts", 2024, section 2.1.
 */
export class Experts extends Module<[x: Tensor], Tensor> {
  readonly router: Linear;
  readonly experts: readonly DecoderFeedForward[];
  readonly #description: ExpertsDescription;

  constructor({ width, feedForward, ...options }: DecoderFeedForwardOptions) {
    super();
    const layer = layerOptions(options);
    this.#description = feedForward.experts!;
    const { count } = this.#description;
    this.router = new Linear(width, count, { ...layer, bias: false });
    this.experts = Array.from({ length: count }, () => new DecoderFeedForward({ ...layer, width, feedForward }));
  }

  /** @param x [..., width] @returns [..., width] */
  override forward(x: Tensor): Tensor {
    const rows = reshape(x, [-1, x.shape.at(-1)!]);
    const { perToken, normalized } = this.#description;
    const probabilities = softmax(toDType(this.router.forward(rows), "float32"), { dim: -1 });
    const { values, indices } = topk(probabilities, perToken, { dim: -1 });
    const shares = normalized ? div(values, sum(values, { dim: -1, keepdim: true })) : values;
    const outputs = reshape(this.outputsFor(rows, indices), [rows.shape[0]!, perToken, rows.shape[1]!]);
    const weighted = mul(outputs, unsqueeze(toDType(shares, x.dtype), -1));
    return reshape(sum(weighted, { dim: 1 }), [...x.shape]);
  }

  /** Returns the outputs of each row's chosen experts, [rows · perToken, width]. */
  private outputsFor(rows: Tensor, indices: Tensor): Tensor {
    const { count, perToken } = this.#description;
    const chosen = noGrad(() => indices.dataSync());
    const byExpert: number[][] = Array.from({ length: count }, () => []);
    for (const [slot, expert] of Array.from(chosen, Number).entries()) byExpert[expert]!.push(slot);
    const outputs = byExpert.flatMap((slots, expert) => {
      if (slots.length === 0) return [];
      const selected = rowsAt(
        rows,
        Int32Array.from(slots, (slot) => Math.floor(slot / perToken)),
      );
      return [this.experts[expert]!.forward(selected)];
    });
    const order = new Int32Array(chosen.length);
    for (const [at, slot] of byExpert.flat().entries()) order[slot] = at;
    return rowsAt(cat(outputs, { dim: 0 }), order);
  }

  /** @internal */
  override details(): string {
    return `${this.#description.perToken} of ${this.#description.count}`;
  }
}

/** Returns rows by index; a single row is a view. */
function rowsAt(x: Tensor, index: Int32Array): Tensor {
  if (index.length === 1) return narrow(x, 0, index[0]!, 1);
  return indexSelect(x, 0, tensor(index));
}
