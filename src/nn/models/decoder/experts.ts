/** A mixture of experts of a {@link Decoder}. */

import { noGrad } from "../../../autograd/modes.ts";
import { lastElement } from "../../../core/collections.ts";
import { sigmoid } from "../../../ops/activation/sigmoid.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { zeros } from "../../../ops/creation/full.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { abs, add, mul, sub } from "../../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../../ops/elementwise/clamp.ts";
import { eq, gt } from "../../../ops/elementwise/comparison.ts";
import { div } from "../../../ops/elementwise/division.ts";
import { maximum } from "../../../ops/elementwise/extrema.ts";
import { gather, indexSelect } from "../../../ops/indexing/gather.ts";
import { maskedFill } from "../../../ops/indexing/masked_fill.ts";
import { scatter } from "../../../ops/indexing/scatter.ts";
import { cat } from "../../../ops/join/cat.ts";
import { sum } from "../../../ops/reduction/sum.ts";
import { softmax } from "../../../ops/softmax/softmax.ts";
import { topk } from "../../../ops/sorting/sort.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import { unsqueeze } from "../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions, zeroParameter } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { ExpertsDescription } from "./description.ts";
import { DecoderFeedForward, type DecoderFeedForwardOptions } from "./feed_forward.ts";
import { Parameter } from "./recurrent/mixer.ts";

/** The bias that a router adds to the probabilities for the choice of experts. */
class Correction extends Module<[probabilities: Tensor], Tensor> {
  readonly bias: Tensor;

  constructor(count: number, options: LayerOptions) {
    super();
    this.bias = zeroParameter([count], options);
  }

  /** @param probabilities [rows, experts] @returns the same shape */
  override forward(probabilities: Tensor): Tensor {
    return add(probabilities, toDType(this.bias, "float32"));
  }
}

/**
 * Computes y = Σ p[e] · expert[e](x) over the experts with the largest probabilities p = softmax(router(x)), which may
 * be divided by their sum. Each expert computes only the tokens that chose it. The choice is read back from the device.
 * An expert for all tokens may be added: y + shared(x), or y + sigmoid(sharedGate(x)) · shared(x).
 *
 * | parameter | shape |
 * |---|---|
 * | `router.weight`, `router.bias` | [experts, width], [experts]; usually without bias |
 * | `correction.bias` | [experts]; null without a correction |
 * | `scales.weight` | [experts]; null without scales of experts |
 * | `experts.0. …` | see {@link DecoderFeedForward} |
 * | `shared. …` | the same; null without a shared expert |
 * | `sharedGate.weight` | [1, width]; null without a gate |
 *
 * Source: A. Q. Jiang et al., "Mixtral of experts", 2024, section 2.1; for groups, corrections and shared experts
 * DeepSeek-AI, "DeepSeek-V3 technical report", 2024, section 2.1.2.
 */
export class Experts extends Module<[x: Tensor, routed?: Tensor], Tensor> {
  readonly router: Linear;
  readonly correction: Correction | null;
  readonly scales: Parameter | null;
  readonly experts: readonly DecoderFeedForward[];
  readonly shared: DecoderFeedForward | null;
  readonly sharedGate: Linear | null;
  readonly #description: ExpertsDescription;

  constructor({ width, feedForward, ...options }: DecoderFeedForwardOptions) {
    super();
    const layer = layerOptions(options);
    this.#description = feedForward.experts!;
    const { count, corrected, shared, routerBias = false, bias = feedForward.bias } = this.#description;
    const own = { ...layer, width, feedForward: { ...feedForward, bias } };
    this.router = new Linear(width, count, { ...layer, bias: routerBias });
    this.correction = corrected ? new Correction(count, layer) : null;
    this.scales = this.#description.expertScales ? new Parameter(count, layer) : null;
    this.experts = Array.from({ length: count }, () => new DecoderFeedForward(own));
    const whole = shared && { ...feedForward, hidden: shared.hidden };
    this.shared = whole ? new DecoderFeedForward({ ...layer, width, feedForward: whole }) : null;
    this.sharedGate = shared?.gated ? new Linear(width, 1, { ...layer, bias: false }) : null;
  }

  /** @param x [..., width] @param routed the input of the router, by default x @returns [..., width] */
  override forward(x: Tensor, routed = x): Tensor {
    const rows = reshape(x, [-1, lastElement(x.shape)]);
    const { perToken, scale = 1, scalesInputs } = this.#description;
    const { shares, indices } = this.choose(this.routerLogits(routed));
    const scaled = toDType(this.scaled(scale === 1 ? shares : mul(shares, scale), indices), x.dtype);
    const found = this.outputsFor(rows, indices, scalesInputs ? reshape(scaled, [-1, 1]) : undefined);
    const outputs = reshape(found, [rows.shape[0], perToken, rows.shape[1]]);
    const weighted = scalesInputs ? outputs : mul(outputs, unsqueeze(scaled, -1));
    const chosen = reshape(sum(weighted, { dim: 1 }), [...x.shape]);
    return this.shared ? add(chosen, this.sharedOf(x, this.shared)) : chosen;
  }

  private routerLogits(routed: Tensor): Tensor {
    return toDType(this.router.forward(reshape(routed, [-1, lastElement(routed.shape)])), "float32");
  }

  /** Multiplies the weights of experts by the learned numbers. */
  private scaled(shares: Tensor, indices: Tensor): Tensor {
    if (!this.scales) return shares;
    return mul(
      shares,
      reshape(indexSelect(this.scales.forward(), 0, reshape(indices as Tensor<"int64">, [-1])), [...shares.shape]),
    );
  }

  private sharedOf(x: Tensor, shared: DecoderFeedForward): Tensor {
    const output = shared.forward(x);
    return this.sharedGate ? mul(sigmoid(this.sharedGate.forward(x)), output) : output;
  }

  /** Chooses experts by the router's logits: their weights and indices, [rows, perToken]. */
  private choose(logits: Tensor): { readonly shares: Tensor; readonly indices: Tensor } {
    const { perToken, normalized, epsilon = 0, leastSum, scores = "softmax", mixerThreshold } = this.#description;
    if (mixerThreshold !== undefined) return mixed(logits, perToken, mixerThreshold);
    const probabilities = scores === "softmax" ? softmax(logits, { dim: -1 }) : sigmoid(logits);
    const largest = topk(this.ranked(probabilities), perToken, { dim: -1 });
    const values = this.correction ? gather(probabilities, -1, largest.indices) : largest.values;
    if (!normalized) return { shares: values, indices: largest.indices };
    const total = sum(values, { dim: -1, keepdim: true });
    const divisor = leastSum === undefined ? total : clamp(total, { min: leastSum });
    return { shares: div(values, epsilon === 0 ? divisor : add(divisor, epsilon)), indices: largest.indices };
  }

  /**
   * Returns the values that rank the experts: the probabilities, with the correction if there is one. Experts outside
   * the chosen groups get 0, or −∞ with a correction.
   */
  private ranked(probabilities: Tensor): Tensor {
    const { groups, count } = this.#description;
    const corrected = this.correction ? noGrad(() => this.correction!.forward(probabilities)) : probabilities;
    if (!groups) return corrected;
    const grouped = reshape(corrected, [-1, groups.count, count / groups.count]);
    const best = sum(topk(grouped, groups.best, { dim: -1 }).values, { dim: -1 });
    const { indices } = topk(best, groups.chosen, { dim: -1 });
    const isChosen = scatter(zeros(best.shape), 1, indices, 1);
    const excluded = this.correction ? -Infinity : 0;
    return reshape(maskedFill(grouped, unsqueeze(eq(isChosen, 0), -1), excluded), [-1, count]);
  }

  /**
   * Computes the outputs of each row's chosen experts, [rows · perToken, width].
   *
   * @param factors multiply the inputs, [rows · perToken, 1]. Default: none
   */
  private outputsFor(rows: Tensor, indices: Tensor, factors?: Tensor): Tensor {
    const { count, perToken } = this.#description;
    const chosen = noGrad(() => indices.dataSync());
    const byExpert: number[][] = Array.from({ length: count }, () => []);
    for (const [slot, expert] of Array.from(chosen, Number).entries()) byExpert[expert].push(slot);
    const outputs = byExpert.flatMap((slots, expert) => {
      if (slots.length === 0) return [];
      const selected = rowsAt(
        rows,
        Int32Array.from(slots, (slot) => Math.floor(slot / perToken)),
      );
      const input = factors ? mul(selected, rowsAt(factors, Int32Array.from(slots))) : selected;
      return [this.experts[expert].forward(input)];
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

/** Chooses experts by {@link ExpertsDescription.mixerThreshold}: one after the other, each among the remaining ones. */
function mixed(logits: Tensor, perToken: number, threshold: number) {
  const { indices, values } = topk(logits, perToken, { dim: -1 });
  let remaining = logits;
  const shares = Array.from({ length: perToken }, (_, turn) => {
    const [best, index] = [narrow(values, 1, turn, 1), narrow(indices, 1, turn, 1)];
    const far = gt(div(sub(best, logits), maximum(abs(logits), best)), threshold);
    const share = gather(softmax(maskedFill(remaining, far, -Infinity), { dim: -1 }), -1, index);
    remaining = scatter(remaining, 1, index as Tensor<"int64">, -Infinity);
    return share;
  });
  return { shares: cat(shares, { dim: -1 }), indices };
}

/** Returns rows by index; a single row is a view. */
function rowsAt(x: Tensor, index: Int32Array): Tensor {
  if (index.length === 1) return narrow(x, 0, index[0], 1);
  return indexSelect(x, 0, tensor(index));
}
