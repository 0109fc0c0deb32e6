/** The state space layer of Mamba 2. */
import { lastElement } from "../../../../core/collections.ts";
import { tupleOf } from "../../../../core/tuples.ts";
import { silu } from "../../../../ops/activation/silu.ts";
import { softplus } from "../../../../ops/activation/softplus.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { zeros } from "../../../../ops/creation/full.ts";
import { tensor } from "../../../../ops/creation/tensor.ts";
import { add, mul, neg } from "../../../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../../../ops/elementwise/clamp.ts";
import { exp } from "../../../../ops/elementwise/exponential.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { repeatInterleave } from "../../../../ops/join/repeat_interleave.ts";
import { matmul } from "../../../../ops/matmul/matmul.ts";
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
import type { StateSpaceDescription } from "../description.ts";
import { CHUNK, decaysOf } from "./decays.ts";
import { Parameter, States, TokenConvolution, withoutPadding } from "./mixer.ts";

/**
 * Computes output(norm(y · silu(z))). With h heads, each with inputs x[t] of `headWidth` elements, and n groups with
 * vectors B[t] and C[t] of `stateSize` elements:
 *
 *     S[t] = exp(Δ[t] · A) · S[t − 1] + Δ[t] · x[t] ⊗ B[t],  y[t] = S[t] · C[t] + D · x[t],
 *     Δ = softplus(δ + stepBias),  A = −exp(logDecay)
 *
 * z, x, B, C and δ are parts of input(x), of which x, B and C first pass a convolution and silu.
 *
 * | parameter | shape |
 * |---|---|
 * | `input.weight` | rows of z, of x, of B, of C, and of δ |
 * | `convolution.weight`, `convolution.bias` | [channels of x, B and C, kernel], [channels] |
 * | `stepBias.weight`, `logDecay.weight`, `skip.weight` | [heads]; Hugging Face's `dt_bias`, `A_log` and `D` |
 * | `norm.weight` | [heads · headWidth]; null without a norm |
 * | `output.weight` | [width, heads · headWidth] |
 *
 * Source: T. Dao and A. Gu, "Transformers are SSMs", 2024, section 6; Hugging Face's `Mamba2Mixer`.
 */
export class StateSpace extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly input: Linear | QuantizedLinear | LoraLinear;
  readonly convolution: TokenConvolution;
  readonly stepBias: Parameter;
  readonly logDecay: Parameter;
  readonly skip: Parameter;
  readonly norm: GroupNorm | null;
  readonly output: Linear | QuantizedLinear | LoraLinear;
  readonly #description: StateSpaceDescription;

  constructor(width: number, description: StateSpaceDescription, options: LayerOptions) {
    super();
    const { heads, headWidth, stateSize, groups, kernel, bias, convolutionBias, eps, norm } = description;
    const { outputBias = bias } = description;
    const layer = layerOptions(options);
    const inner = heads * headWidth;
    const channels = inner + 2 * groups * stateSize;
    this.#description = description;
    this.input = new Linear(width, inner + channels + heads, { ...layer, bias });
    this.convolution = new TokenConvolution(channels, kernel, { ...layer, bias: convolutionBias });
    this.stepBias = new Parameter(heads, layer);
    this.logDecay = new Parameter(heads, layer);
    this.skip = new Parameter(heads, layer);
    this.norm = norm === "none" ? null : new GroupNorm(inner, groups, { ...layer, eps });
    this.output = new Linear(inner, width, { ...layer, bias: outputBias, residual: true });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    const { heads, headWidth, stateSize, groups, limits } = this.#description;
    const states = new States(inputs.cache);
    const count = x.shape[1];
    const inner = heads * headWidth;
    const sizes = [inner, inner + 2 * groups * stateSize, heads];
    const projected = split(this.project(withoutPadding(x, inputs)), sizes, { dim: -1 });
    const [z, mixed, delta] = tupleOf(projected, 3);
    const convolved = withoutPadding(silu(this.convolution.forward(mixed, states)), inputs);
    const parts = split(toDType(convolved, "float32"), [inner, groups * stateSize, groups * stateSize], { dim: -1 });
    const [own, b, c] = parts;
    const step = clamp(softplus(add(toDType(delta, "float32"), this.stepBias.forward())), limits);
    const perHead = (x: Tensor, width: number) =>
      transpose(repeatInterleave(unflatten(x, 2, [groups, width]), heads / groups, { dim: 2 }), 1, 2);
    const values = transpose(unflatten(own, 2, [heads, headWidth]), 1, 2); // [batch, heads, tokens, headWidth]
    const y = this.scan(values, transpose(step, 1, 2), [perHead(b, stateSize), perHead(c, stateSize)], states);
    states.advance(this.#description.beside ? 0 : count);
    const skipped = add(y, mul(values, reshape(this.skip.forward(), [heads, 1, 1])));
    const joined = reshape(transpose(skipped, 1, 2), [...x.shape.slice(0, 2), inner]);
    const output = this.output.forward(toDType(this.gated(joined, silu(toDType(z, "float32"))), x.dtype));
    const { factors } = this.#description;
    return factors ? mul(output, factors.output) : output;
  }

  private project(x: Tensor): Tensor {
    const { heads, headWidth, stateSize, groups, factors } = this.#description;
    if (!factors) return this.input.forward(x);
    const sizes = [heads * headWidth, heads * headWidth, groups * stateSize, groups * stateSize, heads];
    const vector = sizes.flatMap((size, part) => Array<number>(size).fill(factors.parts[part]));
    return mul(this.input.forward(mul(x, factors.input)), tensor(vector, { dtype: x.dtype }));
  }

  /** Multiplies by the gate, and applies the norm before or after it. */
  private gated(y: Tensor, gate: Tensor): Tensor {
    if (!this.norm) return mul(y, gate);
    if (this.#description.norm === "beforeGate") return mul(this.norm.forward(y), gate);
    return this.norm.forward(mul(y, gate));
  }

  /** Runs the recurrence, {@link CHUNK} tokens at a time as products of matrices. */
  private scan(x: Tensor, step: Tensor, [b, c]: readonly [Tensor, Tensor], states: States): Tensor {
    const [batch, heads, count, headWidth] = tupleOf(x.shape, 4);
    const rates = reshape(neg(exp(this.logDecay.forward())), [heads, 1]);
    const stepped = mul(x, unsqueeze(step, -1));
    let state = states.read("state") ?? zeros([batch, heads, headWidth, b.shape[3]]);
    const found: Tensor[] = [];
    for (let first = 0; first < count; first += CHUNK) {
      const size = Math.min(CHUNK, count - first);
      const part = (x: Tensor) => narrow(x, 2, first, size);
      const { within, fromStart, toEnd, whole } = decaysOf(mul(part(step), rates));
      const [xs, bs, cs] = [part(stepped), part(b), part(c)];
      const scores = mul(matmul(cs, transpose(bs, 2, 3)), within);
      const earlier = mul(matmul(cs, transpose(state, 2, 3)), fromStart);
      found.push(add(matmul(scores, xs), earlier));
      const added = matmul(transpose(xs, 2, 3), mul(bs, toEnd));
      state = add(mul(state, whole), added);
    }
    states.write("state", state);
    return found.length === 1 ? found[0] : cat(found, { dim: 2 });
  }
}

/** RMSNorm of groups of elements of equal size, with one weight. */
class GroupNorm extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;
  readonly #groups: number;
  readonly #eps: number;

  constructor(width: number, groups: number, { eps, ...options }: LayerOptions & { readonly eps: number }) {
    super();
    this.weight = new RMSNorm(width, options).weight!;
    this.#groups = groups;
    this.#eps = eps;
  }

  /** @param x [..., width] @returns the same shape */
  override forward(x: Tensor): Tensor {
    const { shape } = x;
    const grouped = reshape(x, [...shape.slice(0, -1), this.#groups, -1]);
    const normed = new RMSNorm(lastElement(grouped.shape), { eps: this.#eps, elementwiseAffine: false }).forward(
      grouped,
    );
    return mul(reshape(normed, [...shape]), toDType(this.weight, x.dtype));
  }
}
