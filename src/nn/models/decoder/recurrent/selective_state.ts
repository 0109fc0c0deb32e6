/** The state space layer of the first Mamba, also in Jamba. */
import { tupleOf } from "../../../../core/tuples.ts";
import { silu } from "../../../../ops/activation/silu.ts";
import { softplus } from "../../../../ops/activation/softplus.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { contiguous } from "../../../../ops/copy/copy.ts";
import { zeros } from "../../../../ops/creation/full.ts";
import { addcmul } from "../../../../ops/elementwise/addcmul.ts";
import { add, mul, neg } from "../../../../ops/elementwise/arithmetic.ts";
import { exp } from "../../../../ops/elementwise/exponential.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { matmul } from "../../../../ops/matmul/matmul.ts";
import { transpose } from "../../../../ops/view/permute.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow, select } from "../../../../ops/view/slice.ts";
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
import type { SelectiveStateDescription } from "../description.ts";
import { Parameter, States, TokenConvolution, withoutPadding } from "./mixer.ts";

/** The number of tokens whose decays are in memory at once. */
const CHUNK = 16;

/**
 * Computes output(y · silu(z)). Each of the `inner` elements of x[t] has a state S of `stateSize` elements:
 *
 *     S[t] = exp(Δ[t] · A) · S[t − 1] + Δ[t] · x[t] · B[t],  y[t] = S[t] · C[t] + D · x[t],
 *     Δ = softplus(step(δ)),  A = −exp(logDecay)
 *
 * x and z are parts of input(x), of which x first passes a convolution and silu. δ, B and C are parts of selection(x),
 * each of which may be normalized.
 *
 * | parameter | shape |
 * |---|---|
 * | `input.weight` | rows of x, and of z |
 * | `convolution.weight`, `convolution.bias` | [inner, kernel], [inner] |
 * | `selection.weight` | rows of δ, of B, and of C |
 * | `step.weight`, `step.bias` | [inner, rank], [inner]; Hugging Face's `dt_proj` |
 * | `stepNorm.weight`, `inputNorm.weight`, `outputNorm.weight` | norms of δ, B and C; null without norms |
 * | `logDecay.weight`, `skip.weight` | [inner · stateSize], [inner]; Hugging Face's `A_log` and `D` |
 * | `output.weight` | [width, inner] |
 *
 * Source: A. Gu and T. Dao, "Mamba: linear-time sequence modeling with selective state spaces", 2023, section 3.2;
 * Hugging Face's `MambaMixer` and `JambaMambaMixer`.
 */
export class SelectiveState extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly input: Linear | QuantizedLinear | LoraLinear;
  readonly convolution: TokenConvolution;
  readonly selection: Linear | QuantizedLinear | LoraLinear;
  readonly stepNorm: RMSNorm | null;
  readonly inputNorm: RMSNorm | null;
  readonly outputNorm: RMSNorm | null;
  readonly step: Linear | QuantizedLinear | LoraLinear;
  readonly logDecay: Parameter;
  readonly skip: Parameter;
  readonly output: Linear | QuantizedLinear | LoraLinear;
  readonly #description: SelectiveStateDescription;

  constructor(width: number, description: SelectiveStateDescription, options: LayerOptions) {
    super();
    const { inner, stateSize, rank, kernel, bias, convolutionBias, normEps, normWeights } = description;
    const layer = layerOptions(options);
    const normed = { ...layer, eps: normEps, elementwiseAffine: normWeights };
    const norm = (size: number) => (normEps === undefined ? null : new RMSNorm(size, normed));
    this.#description = description;
    this.input = new Linear(width, 2 * inner, { ...layer, bias });
    this.convolution = new TokenConvolution(inner, kernel, { ...layer, bias: convolutionBias });
    this.selection = new Linear(inner, rank + 2 * stateSize, { ...layer, bias: false });
    this.stepNorm = norm(rank);
    this.inputNorm = norm(stateSize);
    this.outputNorm = norm(stateSize);
    this.step = new Linear(rank, inner, { ...layer, bias: true });
    this.logDecay = new Parameter(inner * stateSize, layer);
    this.skip = new Parameter(inner, layer);
    this.output = new Linear(inner, width, { ...layer, bias, residual: true });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    const { inner, stateSize, rank } = this.#description;
    const states = new States(inputs.cache);
    const [own, z] = tupleOf(split(this.input.forward(withoutPadding(x, inputs)), inner, { dim: -1 }), 2);
    const mixed = withoutPadding(silu(this.convolution.forward(own, states)), inputs);
    const parts = split(this.selection.forward(mixed), [rank, stateSize, stateSize], { dim: -1 });
    const norms = [this.stepNorm, this.inputNorm, this.outputNorm];
    const [delta, b, c] = parts.map((part, at) => norms[at]?.forward(part) ?? part);
    const values = toDType(mixed, "float32");
    const steps = softplus(toDType(this.step.forward(delta), "float32"));
    const y = this.scan(values, steps, [toDType(b, "float32"), toDType(c, "float32")], states);
    states.advance(x.shape[1]);
    const skipped = add(y, mul(values, this.skip.forward()));
    return this.output.forward(mul(toDType(skipped, x.dtype), silu(z)));
  }

  /**
   * Runs the recurrence token by token. The decays and inputs of {@link CHUNK} tokens are computed at once. The last
   * axis of states is `inner`, which is long, so that step sizes and inputs broadcast along rows.
   */
  private scan(x: Tensor, steps: Tensor, [b, c]: readonly [Tensor, Tensor], states: States): Tensor {
    const { inner, stateSize } = this.#description;
    const [batch, count] = tupleOf(x.shape, 3);
    const byElement = reshape(neg(exp(this.logDecay.forward())), [inner, stateSize]);
    const rates = contiguous(transpose(byElement, 0, 1));
    let state = states.read("state") ?? zeros([batch, stateSize, inner]);
    const found: Tensor[] = [];
    for (let first = 0; first < count; first += CHUNK) {
      const size = Math.min(CHUNK, count - first);
      const part = (all: Tensor) => narrow(all, 1, first, size);
      const decays = exp(mul(unsqueeze(part(steps), 2), rates));
      const added = mul(unsqueeze(part(b), -1), unsqueeze(mul(part(steps), part(x)), 2));
      const outputs = unsqueeze(part(c), 2);
      for (let at = 0; at < size; at++) {
        state = addcmul(select(added, 1, at), state, select(decays, 1, at));
        found.push(matmul(select(outputs, 1, at), state));
      }
    }
    states.write("state", state);
    return found.length === 1 ? found[0] : cat(found, { dim: 1 });
  }
}
