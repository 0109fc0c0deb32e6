import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { either, flag, instanceOf, nothing } from "../../core/kinds.ts";
import { named, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { add } from "../../ops/elementwise/arithmetic.ts";
import { linear } from "../../ops/matmul/linear.ts";
import { dequantize } from "../../quant/dequantize/dequantize.ts";
import { formatName, type GroupSize, groupSizes } from "../../quant/formats.ts";
import { aPrecision, type ProductPrecision, quantizedMatmul } from "../../quant/matmul/matmul.ts";
import { oneOf, type QuantizeInt4Options, quantizeInt4 } from "../../quant/quantize.ts";
import { aQuantizedTensor, type QuantizedTensor } from "../../quant/quantized_tensor.ts";
import { aTensor, expectTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { keep } from "../../tensor/tidy.ts";
import { Linear } from "../layers/linear.ts";
import { Module } from "../layers/module.ts";

const quantizedLinearParameters = parameters("QuantizedLinear", {
  weight: operand(aQuantizedTensor),
  bias: optional(either(aTensor, nothing), null),
  precision: named(aPrecision, "exact"),
});

/** Options of {@link QuantizedLinear}. */
export interface QuantizedLinearOptions {
  /** `"fast"` lets x be rounded to 8 bits, as in `quantizedMatmul`. Default `"exact"`. */
  precision?: ProductPrecision | undefined;
}

/**
 * Computes y = x weightᵀ + bias with quantized weights. The weights are frozen; gradients reach x and the bias. The
 * state has the names of MLX's layer: the parts of the weight are `weight`, `scales` and `biases`, and the bias is
 * `bias`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | a quantized tensor, [outputs, inputs] |
 * | `bias` | [outputs]; null without a bias |
 *
 * @example
 * new QuantizedLinear(quantizeGgml(randn([10, 768]), "q4_0")).forward(randn([32, 768])); // [32, 10]
 *
 * @throws {ShapeError} for a weight that is not a matrix, and a bias of another size.
 */
export class QuantizedLinear extends Module<[x: Tensor], Tensor> {
  readonly inputs: number;
  readonly outputs: number;
  readonly weight: QuantizedTensor;
  readonly bias: Tensor | null;
  /** Precision of products. It is not part of the state. */
  precision: ProductPrecision;

  constructor(weight: QuantizedTensor, bias?: Tensor | null, options?: QuantizedLinearOptions);
  constructor(...values: unknown[]) {
    super();
    const { weight, bias, precision } = quantizedLinearParameters(values);
    const [outputs, inputs] = matrixSizes("QuantizedLinear", weight);
    if (bias && (bias.rank !== 1 || bias.size !== outputs))
      throw new ShapeError(
        "QuantizedLinear",
        "shapesDiffer",
        `expected a bias of ${outputs} values, got ${bias.describe()}`,
      );
    this.inputs = inputs;
    this.outputs = outputs;
    this.weight = weight;
    this.bias = bias;
    this.precision = precision;
  }

  /** @internal Whether `forward` is only the product with the weight, so that it may be fused with other layers. */
  get isProduct(): boolean {
    return this.forward === QuantizedLinear.prototype.forward;
  }

  /** @param x [..., inputs] of float32, float16 or bfloat16 @returns [..., outputs] of the dtype of x */
  override forward(x: Tensor): Tensor {
    return quantizedMatmul(x, this.weight, { precision: this.precision, bias: this.bias });
  }

  /** @internal */
  override details(): string {
    const sizes = `${this.inputs}, ${this.outputs}, ${formatName(this.weight.format)}`;
    return `${sizes}${this.bias ? "" : ", bias: false"}${this.precision === "fast" ? ", fast" : ""}`;
  }
}

/** @internal Returns the sizes of a quantized matrix. @throws {ShapeError} `wrongRank` */
export function matrixSizes(operation: string, { shape }: QuantizedTensor): readonly [number, number] {
  if (shape.length === 2) return tupleOf(shape, 2);
  throw new ShapeError(operation, "wrongRank", `expected a quantized matrix, got [${shape.join(", ")}]`);
}

const withBias = (product: Tensor, bias: Tensor | null): Tensor => {
  if (bias === null) return product;
  return add(product, bias.dtype === product.dtype ? bias : toDType(bias, product.dtype));
};

/** Options of {@link Int4Linear.fromLinear}. */
export interface Int4LinearOptions extends Pick<QuantizeInt4Options, "groupSize"> {
  /**
   * Whether to multiply with float16 weights, which are dequantized at the first product. The layer is then as fast and
   * takes as much memory as a float16 layer. Default false: products read the 4-bit weights.
   */
  dequantOnLoad?: boolean | undefined;
}

const fromLinearParameters = parameters("Int4Linear.fromLinear", {
  linear: operand(instanceOf(Linear, "a Linear")),
  groupSize: named(oneOf<GroupSize>(...groupSizes), 64),
  dequantOnLoad: named(flag, false),
});

const int4LinearParameters = parameters("Int4Linear", {
  weight: operand(aQuantizedTensor),
  bias: optional(either(aTensor, nothing), null),
  dequantOnLoad: named(flag, false),
});

/**
 * A {@link QuantizedLinear} with affine 4-bit weights. With `dequantOnLoad`, the state has 4 bits per weight and memory
 * also has the weights in float16: x is rounded to float16, sums are in float32, and the result has the dtype of x.
 *
 * @example
 * const layer = Int4Linear.fromLinear(new Linear(768, 64), { groupSize: 32 });
 * layer.forward(randn([8, 768])); // [8, 64]
 *
 * @throws {ArgumentError} `wrongFormat`, for weights that are not affine with 4 bits. @throws {ShapeError} as
 * {@link QuantizedLinear}.
 */
export class Int4Linear extends QuantizedLinear {
  readonly dequantOnLoad: boolean;
  /** The weights in float16, and the version of the packed weights that they were dequantized from. */
  #dense: { readonly weight: Tensor; readonly version: number } | null = null;

  constructor(weight: QuantizedTensor, bias?: Tensor | null, options?: Pick<Int4LinearOptions, "dequantOnLoad">);
  constructor(...values: unknown[]) {
    const { weight, bias, dequantOnLoad } = int4LinearParameters(values);
    const { format } = weight;
    if (typeof format === "string" || format.bits !== 4)
      throw new ArgumentError(
        "Int4Linear",
        "wrongFormat",
        `expected affine weights of 4 bits, got ${formatName(format)}`,
      );
    super(weight, bias);
    this.dequantOnLoad = dequantOnLoad;
  }

  /**
   * Quantizes the weights of a linear layer to 4 bits, rounded to nearest. The bias is shared.
   *
   * @throws {ShapeError} `wrongColumns`, if the inputs are not a multiple of `groupSize`. @throws {ArgumentError}
   * `notFinite`, `scaleOverflow`.
   */
  static fromLinear(linear: Linear, options?: Int4LinearOptions): Int4Linear;
  static fromLinear(...values: unknown[]): Int4Linear {
    const { linear, groupSize, dequantOnLoad } = fromLinearParameters(values);
    return new Int4Linear(quantizeInt4(linear.weight, { groupSize }), linear.bias, { dequantOnLoad });
  }

  /** @internal */
  override get isProduct(): boolean {
    return this.forward === Int4Linear.prototype.forward && !this.dequantOnLoad;
  }

  /** @param x [..., inputs] @returns [..., outputs] of the dtype of x */
  override forward(x: Tensor): Tensor {
    if (!this.dequantOnLoad) return super.forward(x);
    expectTensor("Int4Linear", "x", x);
    const half = x.dtype === "float16" ? x : toDType(x, "float16");
    const product = linear(half, this.dense());
    return withBias(x.dtype === "float16" ? product : toDType(product, x.dtype), this.bias);
  }

  /** Dequantizes the weights again after a state was loaded. */
  private dense(): Tensor {
    const { version } = this.weight.parts.packed.storage;
    if (this.#dense?.version === version) return this.#dense.weight;
    this.#dense?.weight.dispose();
    const weight: Tensor = keep(noGrad(() => dequantize(this.weight, { dtype: "float16" })));
    this.#dense = { weight, version };
    return weight;
  }

  /** @internal */
  override details(): string {
    return `${super.details()}${this.dequantOnLoad ? ", float16 in memory" : ""}`;
  }
}
