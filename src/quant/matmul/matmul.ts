import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { choice, either, nothing } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { sumTo } from "../../ops/view/expand.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkGgml, checkInt4 } from "../dequantize/dequantize.ts";
import { scaleDTypes } from "../formats.ts";
import { attributesOf, weightInputs } from "../primitive.ts";
import { aQuantizedTensor, type QuantizedTensor } from "../quantized_tensor.ts";
import { layoutOfRows, type ProductAttributes } from "./attributes.ts";
import { quantizedMatmulCpu } from "./matmul.cpu.ts";
import { quantizedMatmulMetal } from "./matmul.metal.ts";
import { quantizedMatmulReference } from "./matmul.reference.ts";

/** How x is multiplied: exactly, or rounded to 8 bits per value with a scale for each 32 values. */
export type ProductPrecision = "exact" | "fast";

/** Options of {@link quantizedMatmul}. */
export interface QuantizedMatmulOptions {
  /** `"fast"`: x may be rounded to 8 bits. Default `"exact"`. */
  precision?: ProductPrecision | undefined;
  /** Added to each row of the result, as `add` does: [out]. It is converted to the dtype of x. Default null. */
  bias?: Tensor | null | undefined;
}

/** Accepts the precision of a product. */
export const aPrecision = choice("exact", "fast");

/** There is a primitive for each precision, so that `codepaths()` shows which one ran. */
const primitiveNamed = (name: string) =>
  definePrimitive<ProductAttributes>({
    name,
    family: "quant",
    implementations: { metal: quantizedMatmulMetal, cpu: quantizedMatmulCpu, reference: quantizedMatmulReference },
  });

const exactPrimitive = primitiveNamed("quantizedMatmul");
const fastPrimitive = primitiveNamed("quantizedMatmulFast");

/** @internal Whether a format stores integer levels, which can be multiplied with bytes; f16 and bf16 do not. */
export const hasLevels = ({ format }: QuantizedTensor): boolean => format !== "f16" && format !== "bf16";

const declared = {
  x: operand(aTensor),
  w: operand(aQuantizedTensor),
  precision: named(aPrecision, "exact"),
  bias: named(either(aTensor, nothing), null),
} as const;
const quantizedMatmulParameters = parameters("quantizedMatmul", declared);
const matmulInt4Parameters = parameters("matmulInt4", declared);
const matmulGgmlParameters = parameters("matmulGgml", declared);

/**
 * Computes x Wᵀ + bias with quantized weights, as a linear layer does. Weights are unpacked block by block, never as a
 * whole; sums are in float32. Weights are frozen. Gradients of every order flow to x and to the bias. The gradients of
 * x are products that read the quantized weights too.
 *
 * @param x […, in], of float32, float16 or bfloat16, with any number of rows
 * @param w [out, in], of any format
 * @param options `precision`: `"fast"` lets x be rounded to 8 bits, so that bytes are multiplied with bytes: each 32
 * adjacent values of a row get the scale max|x| / 127. If a row has a value that is not finite, its result is NaN.
 * Products with `f16` and `bf16` weights are exact, and so are those on metal where bytes move no less memory.
 * `codepaths()` counts fast products as `quantizedMatmulFast`. Gradients match the exact product. `bias` [out]: the
 * result is bit-identical to `add(product, bias)`, in the same pass
 * @returns […, out], of the dtype of `x`
 *
 * @example
 * const w = quantize(randn([128, 256]), { bits: 4 });
 * quantizedMatmul(randn([3, 256]), w); // float32[3, 128]
 *
 * @throws {ShapeError} `wrongRank`, if the weights are not a matrix; `shapesDiffer`, if the last axis of x differs from
 * that of W, or the size of the bias from its rows. @throws {DTypeError} if x or the bias has an unsupported dtype.
 * @throws {DisposedError}
 */
export function quantizedMatmul(x: Tensor, w: QuantizedTensor, options?: QuantizedMatmulOptions): Tensor;
export function quantizedMatmul(...values: unknown[]): Tensor {
  return checkedProduct("quantizedMatmul", quantizedMatmulParameters(values));
}

/**
 * Computes x Wᵀ + bias with affine weights of 4 bits, as {@link quantizedMatmul} does.
 *
 * @example
 * matmulInt4(randn([3, 256]), quantizeInt4(randn([128, 256]))); // float32[3, 128]
 *
 * @throws {ArgumentError} `wrongFormat`, for any other format. @throws the same errors as {@link quantizedMatmul}.
 */
export function matmulInt4(x: Tensor, w: QuantizedTensor, options?: QuantizedMatmulOptions): Tensor;
export function matmulInt4(...values: unknown[]): Tensor {
  const given = matmulInt4Parameters(values);
  checkInt4("matmulInt4", given.w);
  return checkedProduct("matmulInt4", given);
}

/**
 * Computes x Wᵀ + bias with weights in GGML's blocks, as {@link quantizedMatmul} does.
 *
 * @example
 * matmulGgml(randn([3, 256]), quantizeGgml(randn([128, 256]), "q8_0")); // float32[3, 128]
 *
 * @throws {ArgumentError} `wrongFormat`, for affine weights. @throws the same errors as {@link quantizedMatmul}.
 */
export function matmulGgml(x: Tensor, w: QuantizedTensor, options?: QuantizedMatmulOptions): Tensor;
export function matmulGgml(...values: unknown[]): Tensor {
  const given = matmulGgmlParameters(values);
  checkGgml("matmulGgml", given.w);
  return checkedProduct("matmulGgml", given);
}

type Operands = ReturnType<typeof quantizedMatmulParameters>;

function checkedProduct(operation: string, { x, w, precision, bias }: Operands): Tensor {
  checkProduct(operation, x, w, "w");
  const converted = bias && biasFor(operation, "bias", bias, x, w.shape[0]);
  return product(operation, x, w, { isTransposed: false, isFast: precision === "fast" && hasLevels(w) }, converted);
}

/** @internal Checks that x and weights can be multiplied. @throws {DTypeError} @throws {ShapeError} */
export function checkProduct(operation: string, x: Tensor, w: QuantizedTensor, name: string): void {
  checkFloat(operation, "x", x);
  if (w.rank !== 2)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected ${name} to be a matrix [out, in], got [${w.shape.join(", ")}]`,
    );
  const columns = w.shape[1];
  if (x.rank === 0 || x.shape.at(-1) !== columns)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected x to have ${columns} values along its last axis, as many as ${name} has columns, got ${x.describe()}`,
    );
}

/**
 * @internal Checks a bias of `rows` values, and converts it to the dtype of x. @throws {DTypeError}
 * @throws {ShapeError}
 */
export function biasFor(operation: string, name: string, bias: Tensor, x: Tensor, rows: number): Tensor {
  checkFloat(operation, name, bias);
  if (bias.rank !== 1 || bias.size !== rows)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected ${name} to be [${rows}], one value per row of the weights, got ${bias.describe()}`,
    );
  return bias.dtype === x.dtype ? bias : toDType(bias, x.dtype);
}

function checkFloat(operation: string, name: string, { dtype }: Tensor): void {
  if (scaleDTypes.some((each) => each === dtype)) return;
  throw new DTypeError(
    operation,
    "unsupportedDType",
    `expected ${name} to be one of ${scaleDTypes.join(", ")}, got ${dtype}; convert with toDType(${name}, "float32")`,
  );
}

type ProductKind = Pick<ProductAttributes, "isTransposed" | "isFast">;

/** @internal Computes x Wᵀ + bias, or x W; each product is the gradient of the other. */
export function product(
  operation: string,
  x: Tensor,
  w: QuantizedTensor,
  kind: ProductKind,
  bias: Tensor | null = null,
): Tensor {
  const { isTransposed, isFast } = kind;
  const lead = x.shape.slice(0, -1);
  const shape = [...lead, w.shape[isTransposed ? 1 : 0]];
  const hasBias = bias !== null;
  const attributes = { ...attributesOf(w), rows: w.shape[0], count: elementCount(lead), ...kind, hasBias };
  const output = executeOnRows(x, hasBias ? [bias] : [], (rows, biases) =>
    execute(
      isFast ? fastPrimitive : exactPrimitive,
      [rows, ...weightInputs(w), ...biases],
      ...([shape, x.dtype, attributes, operation] as const),
    ),
  );
  const gradientOfX = (g: Tensor) => product(operation, g, w, { isTransposed: !isTransposed, isFast: false });
  if (bias === null) record(operation, [x], [output], [], ([g]) => [gradientOfX(g)]);
  else
    record(operation, [x, bias], [output], [], ([g], _, needs) => [
      needs[0] ? gradientOfX(g) : null,
      needs[1] ? sumTo(g, [lastElement(shape)]) : null,
    ]);
  return output;
}

/** @internal Runs a primitive on rows of x and dense biases. Copies x if its rows need more than two strides. */
export function executeOnRows<Output extends Tensor | Tensor[]>(
  x: Tensor,
  biases: readonly Tensor[],
  body: (x: Tensor, biases: readonly Tensor[]) => Output,
): Output {
  const rows = layoutOfRows(x) === undefined ? noGrad(() => contiguous(x)) : x;
  const dense = biases.map((bias) => noGrad(() => contiguous(bias)));
  const output = body(rows, dense);
  if (rows !== x) rows.dispose();
  for (const [at, bias] of dense.entries()) if (bias !== biases[at]) bias.dispose();
  return output;
}
