/** The delta attention of Kimi Linear, in which the elements of a key decay at different rates. */
import { tupleOf } from "../../../../core/tuples.ts";
import { sigmoid } from "../../../../ops/activation/sigmoid.ts";
import { silu } from "../../../../ops/activation/silu.ts";
import { softplus } from "../../../../ops/activation/softplus.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { zeros } from "../../../../ops/creation/full.ts";
import { add, mul, neg, sub } from "../../../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../../../ops/elementwise/clamp.ts";
import { exp } from "../../../../ops/elementwise/exponential.ts";
import { tril } from "../../../../ops/indexing/triangle.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { matmul } from "../../../../ops/matmul/matmul.ts";
import { sum } from "../../../../ops/reduction/sum.ts";
import { cumsum } from "../../../../ops/scan/cumsum.ts";
import { unflatten } from "../../../../ops/view/flatten.ts";
import { transpose } from "../../../../ops/view/permute.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow } from "../../../../ops/view/slice.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import { RMSNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import type { LoraLinear } from "../../../quantized/lora_linear.ts";
import type { AttentionInputs } from "../attention.ts";
import type { KimiDeltaDescription } from "../description.ts";
import { inverseOf, normalized } from "./delta_net.ts";
import { Parameter, States, TokenConvolution, withoutPadding } from "./mixer.ts";

type Projection = Linear | QuantizedLinear | LoraLinear;

/** The number of tokens that are computed together. The decay of each element is computed for each pair of them. */
const CHUNK = 16;

/**
 * Computes output(norm(y) · sigmoid(gateUp(gateDown(x)))). Each head has a state S, and q and k of length 1:
 *
 *     S[t] = D[t] S[t − 1] + β[t] · k[t] ⊗ (v[t] − (D[t] S[t − 1])ᵀ k[t]),  y[t] = S[t]ᵀ q[t] / √width,
 *     β = sigmoid(strengths(x)),  ln D = −exp(logDecay) · softplus(forgetUp(forgetDown(x)) + stepBias)
 *
 * D is diagonal. q, k and v pass a convolution and silu.
 *
 * | parameter | shape |
 * |---|---|
 * | `query.weight`, `key.weight`, `value.weight` | [heads · headWidth, width] |
 * | `queryConvolution.weight`, `keyConvolution.weight`, `valueConvolution.weight` | [heads · headWidth, kernel] |
 * | `forgetDown.weight`, `gateDown.weight` | [headWidth, width] |
 * | `forgetUp.weight`, `gateUp.weight` | [heads · headWidth, headWidth] |
 * | `strengths.weight` | [heads, width] |
 * | `stepBias.weight`, `logDecay.weight` | [heads · headWidth], [heads]; Hugging Face's `dt_bias` and `A_log` |
 * | `norm.weight` | [headWidth] |
 * | `output.weight` | [width, heads · headWidth] |
 *
 * Source: Kimi team, "Kimi Linear: an expressive, efficient attention architecture", 2025.
 */
export class KimiDelta extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly query: Projection;
  readonly key: Projection;
  readonly value: Projection;
  readonly queryConvolution: TokenConvolution;
  readonly keyConvolution: TokenConvolution;
  readonly valueConvolution: TokenConvolution;
  readonly forgetDown: Projection;
  readonly forgetUp: Projection;
  readonly stepBias: Parameter;
  readonly logDecay: Parameter;
  readonly strengths: Projection;
  readonly gateDown: Projection;
  readonly gateUp: Projection;
  readonly norm: RMSNorm;
  readonly output: Projection;
  readonly #description: KimiDeltaDescription;

  constructor(width: number, description: KimiDeltaDescription, options: LayerOptions) {
    super();
    const { heads, headWidth, kernel, eps } = description;
    const layer = { ...layerOptions(options), bias: false };
    const inner = heads * headWidth;
    const linear = (from: number, to: number) => new Linear(from, to, layer);
    const convolution = () => new TokenConvolution(inner, kernel, layer);
    this.#description = description;
    [this.query, this.key, this.value] = [linear(width, inner), linear(width, inner), linear(width, inner)];
    [this.queryConvolution, this.keyConvolution, this.valueConvolution] = [convolution(), convolution(), convolution()];
    [this.forgetDown, this.forgetUp] = [linear(width, headWidth), linear(headWidth, inner)];
    [this.stepBias, this.logDecay] = [new Parameter(inner, layer), new Parameter(heads, layer)];
    this.strengths = linear(width, heads);
    [this.gateDown, this.gateUp] = [linear(width, headWidth), linear(headWidth, inner)];
    this.norm = new RMSNorm(headWidth, { ...layerOptions(options), eps });
    this.output = new Linear(inner, width, { ...layer, residual: true });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    const { headWidth } = this.#description;
    const states = new States(inputs.cache);
    const own = withoutPadding(x, inputs);
    const heads = (rows: Tensor) => unflatten(toDType(rows, "float32"), 2, [-1, headWidth]);
    const convolved = (layer: Projection, convolution: TokenConvolution, name: string) =>
      transpose(heads(silu(convolution.forward(layer.forward(own), states, name))), 1, 2);
    const q = normalized(convolved(this.query, this.queryConvolution, "query"));
    const k = normalized(convolved(this.key, this.keyConvolution, "key"));
    const v = convolved(this.value, this.valueConvolution, "value");
    const speed = softplus(add(toDType(this.forgetUp.forward(this.forgetDown.forward(own)), "float32"), this.bias));
    const rates = reshape(neg(exp(this.logDecay.forward())), [-1, 1]);
    const logs = transpose(mul(heads(speed), rates), 1, 2);
    const strengths = transpose(sigmoid(toDType(this.strengths.forward(own), "float32")), 1, 2);
    const y = this.scan(mul(q, headWidth ** -0.5), k, v, { strengths, logs }, states);
    states.advance(x.shape[1]);
    const gate = sigmoid(heads(this.gateUp.forward(this.gateDown.forward(own))));
    const gated = mul(this.norm.forward(transpose(y, 1, 2)), gate);
    return this.output.forward(toDType(reshape(gated, [...x.shape.slice(0, 2), -1]), x.dtype));
  }

  private get bias(): Tensor {
    return this.stepBias.forward();
  }

  /**
   * Runs the recurrence, {@link CHUNK} tokens at a time, as {@link DeltaNet} does. As elements decay differently, a
   * product of two tokens' keys is a sum over elements with their decays between the two tokens.
   */
  private scan(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    { strengths, logs }: { readonly strengths: Tensor; readonly logs: Tensor },
    states: States,
  ): Tensor {
    const [batch, heads, count, width] = tupleOf(q.shape, 4);
    let state = states.read("state") ?? zeros([batch, heads, width, v.shape[3]]);
    const found: Tensor[] = [];
    for (let first = 0; first < count; first += CHUNK) {
      const size = Math.min(CHUNK, count - first);
      const part = (x: Tensor) => narrow(x, 2, first, size);
      const [qs, ks, strength, sums] = [part(q), part(k), unsqueeze(part(strengths), -1), cumsum(part(logs), 2)];
      const [fromStart, last] = [exp(sums), narrow(sums, 2, size - 1, 1)];
      // later tokens have positive logarithms here; tril removes their products
      const between = exp(clamp(sub(unsqueeze(sums, 3), unsqueeze(sums, 2)), { max: 0 }));
      const products = (x: Tensor) => sum(mul(mul(unsqueeze(x, 3), unsqueeze(ks, 2)), between), { dim: -1 });
      const scaled = mul(ks, strength);
      const inverse = inverseOf(neg(tril(products(scaled), -1)));
      const changes = matmul(inverse, sub(mul(part(v), strength), matmul(mul(scaled, fromStart), state)));
      found.push(add(matmul(mul(qs, fromStart), state), matmul(tril(products(qs)), changes)));
      const toEnd = mul(ks, exp(sub(last, sums)));
      state = add(mul(state, exp(transpose(last, 2, 3))), matmul(transpose(toEnd, 2, 3), changes));
    }
    states.write("state", state);
    return found.length === 1 ? found[0] : cat(found, { dim: 2 });
  }
}
