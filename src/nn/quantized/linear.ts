import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { either, flag, instanceOf, nothing } from "../../core/kinds.ts";
import { named, operand, optional, parameters } from "../../core/parameters.ts";
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
  /** `"fast"`: x may be rounded to 8 bits, as `quantizedMatmul` has it. Default `"exact"`. */
  precision?: ProductPrecision | undefined;
}

/**
 * y = x weightᵀ + bias with quantised weights, which are frozen: gradients reach x and the bias. The state is that of
 * MLX's layer: the parts of the weight under `weight`, `scales` and `biases`, and `bias`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | a quantised tensor, [outputs, inputs] |
 * | `bias` | [outputs]; null without |
 *
 * @example
 * new QuantizedLinear(quantizeGgml(randn([10, 784]), "q4_0")).forward(randn([32, 784])); // [32, 10]
 *
 * @throws {ShapeError} for a weight that is no matrix, and a bias of another size.
 */
export class QuantizedLinear extends Module<[x: Tensor], Tensor> {
  readonly inputs: number;
  readonly outputs: number;
  readonly weight: QuantizedTensor;
  readonly bias: Tensor | null;
  /** How x is multiplied. It is no part of the state. */
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

  /** @internal Whether `forward` is the product with the weight, so that others may compute it with more. */
  get isProduct(): boolean {
    return this.forward === QuantizedLinear.prototype.forward;
  }

  /** @param x [..., inputs] of float32, float16 or bfloat16 @returns [..., outputs] of its dtype */
  override forward(x: Tensor): Tensor {
    return quantizedMatmul(x, this.weight, { precision: this.precision, bias: this.bias });
  }

  /** @internal */
  override details(): string {
    const own = `${this.inputs}, ${this.outputs}, ${formatName(this.weight.format)}`;
    return `${own}${this.bias ? "" : ", bias: false"}${this.precision === "fast" ? ", fast" : ""}`;
  }
}

/** @internal The sizes of quantised weights. @throws {ShapeError} `wrongRank` */
export function matrixSizes(operation: string, { shape }: QuantizedTensor): readonly [number, number] {
  if (shape.length === 2) return shape as unknown as readonly [number, number];
  throw new ShapeError(operation, "wrongRank", `expected a quantised matrix, got [${shape.join(", ")}]`);
}

const withBias = (product: Tensor, bias: Tensor | null): Tensor => {
  if (bias === null) return product;
  return add(product, bias.dtype === product.dtype ? bias : toDType(bias, product.dtype)) as Tensor;
};

/** Options of {@link Int4Linear.fromLinear}. */
export interface Int4LinearOptions extends Pick<QuantizeInt4Options, "groupSize"> {
  /**
   * Whether products are with the weights in float16, which are made of the four bits at the first product: as fast as
   * a layer in float16, and as large. Default false: products read the four bits.
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
 * A {@link QuantizedLinear} of affine weights of four bits. With `dequantOnLoad` it is stored in four bits and has its
 * weights in float16 in memory: x is rounded to float16, sums are in float32, and the result has the dtype of x.
 *
 * @example
 * const layer = Int4Linear.fromLinear(new Linear(784, 64), { groupSize: 32 });
 * layer.forward(randn([8, 784])); // no multiple of 32 is an error; 784 is not one of 64 either
 *
 * @throws {ArgumentError} `wrongFormat`, for weights that are not affine with 4 bits. @throws {ShapeError} as
 * {@link QuantizedLinear}.
 */
export class Int4Linear extends QuantizedLinear {
  readonly dequantOnLoad: boolean;
  /** In float16, and the version of the packed weights that it was made of. */
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
   * A layer with the weights of another one in four bits, rounded to the nearest. The bias is shared.
   *
   * @throws {ShapeError} `wrongColumns`, for inputs that are no whole groups. @throws {ArgumentError} `notFinite`,
   * `scaleOverflow`.
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

  override forward(x: Tensor): Tensor {
    if (!this.dequantOnLoad) return super.forward(x);
    expectTensor("Int4Linear", "x", x);
    const half = x.dtype === "float16" ? x : toDType(x, "float16");
    const product = linear(half, this.dense());
    return withBias(x.dtype === "float16" ? product : toDType(product, x.dtype), this.bias);
  }

  /** Made again when a state was loaded. */
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
