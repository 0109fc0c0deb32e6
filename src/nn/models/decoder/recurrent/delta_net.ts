/** The gated delta net of Qwen3-Next and Qwen3.5. */
import { lastElement } from "../../../../core/collections.ts";
import { tupleOf } from "../../../../core/tuples.ts";
import { sigmoid } from "../../../../ops/activation/sigmoid.ts";
import { silu } from "../../../../ops/activation/silu.ts";
import { softplus } from "../../../../ops/activation/softplus.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { eye } from "../../../../ops/creation/eye.ts";
import { zeros } from "../../../../ops/creation/full.ts";
import { add, mul, neg, sub } from "../../../../ops/elementwise/arithmetic.ts";
import { exp } from "../../../../ops/elementwise/exponential.ts";
import { rsqrt } from "../../../../ops/elementwise/power.ts";
import { tril } from "../../../../ops/indexing/triangle.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { repeatInterleave } from "../../../../ops/join/repeat_interleave.ts";
import { matmul } from "../../../../ops/matmul/matmul.ts";
import { sum } from "../../../../ops/reduction/sum.ts";
import { unflatten } from "../../../../ops/view/flatten.ts";
import { transpose } from "../../../../ops/view/permute.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow } from "../../../../ops/view/slice.ts";
import { split } from "../../../../ops/view/split.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import { RMSNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import type { LoraLinear } from "../../../quantized/lora_linear.ts";
import type { AttentionInputs } from "../attention.ts";
import type { DeltaNetDescription } from "../description.ts";
import { CHUNK, decaysOf } from "./decays.ts";
import { Parameter, States, TokenConvolution, withoutPadding } from "./mixer.ts";

/** Added to the sum of squares of queries and keys, as in Hugging Face's `l2norm`. */
const EPS = 1e-6;

/**
 * Computes output(norm(y) · silu(z)). Each head has queries and keys of `keyWidth` elements, of length 1, and values:
 *
 *     S[t] = g[t] · S[t − 1] + β[t] · k[t] ⊗ (v[t] − (g[t] · S[t − 1])ᵀ k[t]),  y[t] = S[t]ᵀ q[t] / √keyWidth,
 *     β = sigmoid(b),  ln g = −exp(logDecay) · softplus(a + stepBias)
 *
 * q, k and v pass a convolution and silu. A key head serves `valueHeads / keyHeads` value heads.
 *
 * | parameter | shape |
 * |---|---|
 * | `input.weight` | rows of q, k, v and z for each key head; with separate projections, all rows of q, k, then v |
 * | `rates.weight` | rows of b and a for each key head; with separate projections, rows of a |
 * | `gate.weight`, `strengths.weight` | with separate projections, rows of z and of b; else null |
 * | `convolution.weight` | [channels of q, k and v, kernel] |
 * | `stepBias.weight`, `logDecay.weight` | [valueHeads]; Hugging Face's `dt_bias` and `A_log` |
 * | `norm.weight` | [valueWidth] |
 * | `output.weight` | [width, valueHeads · valueWidth] |
 *
 * Source: S. Yang et al., "Gated delta networks", 2024; Hugging Face's `Qwen3NextGatedDeltaNet`.
 */
export class DeltaNet extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly input: Linear | QuantizedLinear | LoraLinear;
  readonly gate: Linear | QuantizedLinear | LoraLinear | null;
  readonly strengths: Linear | QuantizedLinear | LoraLinear | null;
  readonly rates: Linear | QuantizedLinear | LoraLinear;
  readonly convolution: TokenConvolution;
  readonly stepBias: Parameter;
  readonly logDecay: Parameter;
  readonly norm: RMSNorm;
  readonly output: Linear | QuantizedLinear | LoraLinear;
  readonly #description: DeltaNetDescription;

  constructor(width: number, description: DeltaNetDescription, options: LayerOptions) {
    super();
    const { apart, keyHeads, valueHeads, keyWidth, valueWidth, kernel, eps } = description;
    const layer = { ...layerOptions(options), bias: false };
    const [keys, values] = [keyHeads * keyWidth, valueHeads * valueWidth];
    this.#description = description;
    this.input = new Linear(width, 2 * keys + (apart ? 1 : 2) * values, layer);
    this.gate = apart ? new Linear(width, values, layer) : null;
    this.strengths = apart ? new Linear(width, valueHeads, layer) : null;
    this.rates = new Linear(width, (apart ? 1 : 2) * valueHeads, layer);
    this.convolution = new TokenConvolution(2 * keys + values, kernel, layer);
    this.stepBias = new Parameter(valueHeads, layer);
    this.logDecay = new Parameter(valueHeads, layer);
    this.norm = new RMSNorm(valueWidth, { ...layerOptions(options), eps });
    this.output = new Linear(values, width, { ...layer, residual: true });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    const { keyHeads, valueHeads, keyWidth, valueWidth, tiled } = this.#description;
    const states = new States(inputs.cache);
    const [perKey, [keys, values]] = [valueHeads / keyHeads, [keyHeads * keyWidth, valueHeads * valueWidth]];
    const { qkv, z, b, a } = this.project(withoutPadding(x, inputs));
    const flat = (rows: Tensor) => reshape(rows, [...x.shape.slice(0, 2), -1]);
    const convolved = silu(this.convolution.forward(qkv, states));
    const [queries, own, inner] = split(toDType(convolved, "float32"), [keys, keys, values], { dim: -1 });
    const heads = (rows: Tensor) => {
      const unit = normalized(unflatten(rows, 2, [keyHeads, keyWidth]));
      const repeated = tiled
        ? cat(new Array<Tensor>(perKey).fill(unit), 2)
        : repeatInterleave(unit, perKey, { dim: 2 });
      return transpose(repeated, 1, 2);
    };
    const speed = softplus(add(toDType(a, "float32"), this.stepBias.forward()));
    const logs = mul(speed, neg(exp(this.logDecay.forward())));
    const y = this.scan(
      mul(heads(queries), keyWidth ** -0.5),
      heads(own),
      transpose(unflatten(inner, 2, [valueHeads, valueWidth]), 1, 2),
      { strengths: transpose(sigmoid(toDType(b, "float32")), 1, 2), logs: transpose(logs, 1, 2) },
      states,
    );
    states.advance(x.shape[1]);
    const gate = silu(unflatten(toDType(z, "float32"), 2, [valueHeads, valueWidth]));
    const gated = mul(this.norm.forward(transpose(y, 1, 2)), gate);
    return this.output.forward(toDType(flat(gated), x.dtype));
  }

  private project(x: Tensor): Readonly<Record<"qkv" | "z" | "b" | "a", Tensor>> {
    const { keyHeads, valueHeads, keyWidth, valueWidth } = this.#description;
    if (this.gate && this.strengths) {
      const [qkv, z, b, a] = [this.input, this.gate, this.strengths, this.rates].map((layer) => layer.forward(x));
      return { qkv: qkv, z: z, b: b, a: a };
    }
    const perKey = valueHeads / keyHeads;
    const ofKeyHeads = (rows: Tensor, sizes: readonly number[]) =>
      split(unflatten(rows, 2, [keyHeads, -1]), [...sizes], { dim: -1 }).map((part) =>
        reshape(part, [...x.shape.slice(0, 2), -1]),
      );
    const sizes = [keyWidth, keyWidth, perKey * valueWidth, perKey * valueWidth];
    const [q, k, v, z] = ofKeyHeads(this.input.forward(x), sizes);
    const [b, a] = ofKeyHeads(this.rates.forward(x), [perKey, perKey]);
    return { qkv: cat([q, k, v], { dim: -1 }), z: z, b: b, a: a };
  }

  /**
   * Runs the recurrence, {@link CHUNK} tokens at a time as products of matrices. With A[i, j] = −β[i] · decay ·
   * kᵢ · kⱼ for j < i, the tokens of a chunk change the state by (1 − A)⁻¹ (β · v − β · decay · k S).
   */
  private scan(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    { strengths, logs }: { readonly strengths: Tensor; readonly logs: Tensor },
    states: States,
  ): Tensor {
    const [batch, heads, count, keyWidth] = tupleOf(q.shape, 4);
    let state = states.read("state") ?? zeros([batch, heads, keyWidth, v.shape[3]]);
    const found: Tensor[] = [];
    for (let first = 0; first < count; first += CHUNK) {
      const size = Math.min(CHUNK, count - first);
      const part = (x: Tensor) => narrow(x, 2, first, size);
      const { within, fromStart, toEnd, whole } = decaysOf(part(logs));
      const [qs, ks, strength] = [part(q), part(k), unsqueeze(part(strengths), -1)];
      const scaled = mul(ks, strength);
      const products = mul(matmul(scaled, transpose(ks, 2, 3)), within);
      const inverse = inverseOf(neg(tril(products, -1)));
      const known = matmul(mul(scaled, fromStart), state);
      const changes = matmul(inverse, sub(mul(part(v), strength), known));
      const scores = mul(matmul(qs, transpose(ks, 2, 3)), within);
      const earlier = matmul(mul(qs, fromStart), state);
      found.push(add(earlier, matmul(scores, changes)));
      state = add(mul(state, whole), matmul(transpose(mul(ks, toEnd), 2, 3), changes));
    }
    states.write("state", state);
    return found.length === 1 ? found[0] : cat(found, { dim: 2 });
  }
}

/** @internal Returns vectors of length 1. */
export const normalized = (x: Tensor): Tensor => mul(x, rsqrt(add(sum(mul(x, x), { dim: -1, keepdim: true }), EPS)));

/** @internal Returns (1 − a)⁻¹ = Σ aⁿ of strictly lower triangular matrices: (1 + a)(1 + a²)(1 + a⁴) … */
export function inverseOf(a: Tensor): Tensor {
  const size = lastElement(a.shape);
  let [product, power] = [add(a, eye(size)), a];
  for (let terms = 2; terms < size; terms *= 2) {
    power = matmul(power, power);
    product = add(product, matmul(product, power));
  }
  return product;
}
