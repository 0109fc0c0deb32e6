import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { choice } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkGgml, checkInt4 } from "../dequantize/dequantize.ts";
import { scaleDTypes } from "../formats.ts";
import { attributesOf, weightInputs } from "../primitive.ts";
import { aQuantizedTensor, type QuantizedTensor } from "../quantized_tensor.ts";
import type { ProductAttributes } from "./attributes.ts";
import { quantizedMatmulCpu } from "./matmul.cpu.ts";
import { quantizedMatmulMetal } from "./matmul.metal.ts";
import { quantizedMatmulReference } from "./matmul.reference.ts";

/** How x is multiplied: as it is, or in 8 bits a value with a scale for each 32. */
export type ProductPrecision = "exact" | "fast";

/** Options of {@link quantizedMatmul}. */
export interface QuantizedMatmulOptions {
  /** `"fast"`: x may be rounded to 8 bits. Default `"exact"`. */
  precision?: ProductPrecision | undefined;
}

/** The precision of a product, of functions and layers. */
export const aPrecision = choice("exact", "fast");

/** A primitive for each precision, so that `codepaths()` tells which one ran. */
const primitiveNamed = (name: string) =>
  definePrimitive<ProductAttributes>({
    name,
    family: "quant",
    implementations: { metal: quantizedMatmulMetal, cpu: quantizedMatmulCpu, reference: quantizedMatmulReference },
  });

const exactPrimitive = primitiveNamed("quantizedMatmul");
const fastPrimitive = primitiveNamed("quantizedMatmulFast");

/** Weights of floats have no levels to multiply with bytes. */
const hasLevels = ({ format }: QuantizedTensor): boolean => format !== "f16" && format !== "bf16";

const declared = {
  ...{ x: operand(aTensor), w: operand(aQuantizedTensor) },
  precision: named(aPrecision, "exact"),
} as const;
const quantizedMatmulParameters = parameters("quantizedMatmul", declared);
const matmulInt4Parameters = parameters("matmulInt4", declared);
const matmulGgmlParameters = parameters("matmulGgml", declared);

/**
 * The product x Wᵀ with quantised weights, as a linear layer computes it. Weights are unpacked a block at a time and
 * never as a whole; sums are in float32. Weights are frozen: x has gradients, of every order, by products that read the
 * quantised weights too.
 *
 * @param x […, in], of float32, float16 or bfloat16, with any number of rows
 * @param w [out, in], of any format
 * @param options `precision`: `"fast"` lets x be rounded to 8 bits, so that bytes are multiplied with bytes: each 32
 * adjacent values of a row get the scale max|x| / 127. A row with a value that is not finite has NaN as its result.
 * cpu and reference do so with weights of every format but `f16` and `bf16`; metal computes as exactly as ever.
 * `codepaths()` counts such products as `quantizedMatmulFast`. Gradients are those of the exact product
 * @returns […, out], of the dtype of `x`
 *
 * @example
 * const w = quantize(randn([128, 256]), { bits: 4 });
 * quantizedMatmul(randn([3, 256]), w); // float32[3, 128]
 *
 * @throws {ShapeError} `wrongRank`, for weights that are no matrix; `shapesDiffer`, where x has another last axis than
 * W. @throws {DTypeError} for another dtype of x. @throws {DisposedError}
 */
export function quantizedMatmul(x: Tensor, w: QuantizedTensor, options?: QuantizedMatmulOptions): Tensor;
export function quantizedMatmul(...values: unknown[]): Tensor {
  const { x, w, precision } = quantizedMatmulParameters(values);
  return checkedProduct("quantizedMatmul", x, w, precision);
}

/**
 * As {@link quantizedMatmul}, with affine weights of 4 bits.
 *
 * @example
 * matmulInt4(randn([3, 256]), quantizeInt4(randn([128, 256]))); // float32[3, 128]
 *
 * @throws {ArgumentError} `wrongFormat`, for another format. @throws what {@link quantizedMatmul} throws.
 */
export function matmulInt4(x: Tensor, w: QuantizedTensor, options?: QuantizedMatmulOptions): Tensor;
export function matmulInt4(...values: unknown[]): Tensor {
  const { x, w, precision } = matmulInt4Parameters(values);
  checkInt4("matmulInt4", w);
  return checkedProduct("matmulInt4", x, w, precision);
}

/**
 * As {@link quantizedMatmul}, with weights in GGML's blocks.
 *
 * @example
 * matmulGgml(randn([3, 256]), quantizeGgml(randn([128, 256]), "q8_0")); // float32[3, 128]
 *
 * @throws {ArgumentError} `wrongFormat`, for affine weights. @throws what {@link quantizedMatmul} throws.
 */
export function matmulGgml(x: Tensor, w: QuantizedTensor, options?: QuantizedMatmulOptions): Tensor;
export function matmulGgml(...values: unknown[]): Tensor {
  const { x, w, precision } = matmulGgmlParameters(values);
  checkGgml("matmulGgml", w);
  return checkedProduct("matmulGgml", x, w, precision);
}

function checkedProduct(operation: string, x: Tensor, w: QuantizedTensor, precision: ProductPrecision): Tensor {
  if (!scaleDTypes.some((dtype) => dtype === x.dtype))
    throw new DTypeError(
      operation,
      "unsupportedDType",
      `expected x to be one of ${scaleDTypes.join(", ")}, got ${x.dtype}; toDType(x, "float32") converts`,
    );
  if (w.rank !== 2)
    throw new ShapeError(operation, "wrongRank", `expected w to be a matrix [out, in], got [${w.shape.join(", ")}]`);
  const [, columns] = w.shape;
  if (x.rank === 0 || x.shape.at(-1) !== columns)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected x to have ${columns} values along its last axis, as a row of w has, got ${x.describe()}`,
    );
  return product(operation, x, w, { isTransposed: false, isFast: precision === "fast" && hasLevels(w) });
}

type ProductKind = Pick<ProductAttributes, "isTransposed" | "isFast">;

/** x Wᵀ, or x W; each is the gradient of the other. */
function product(operation: string, x: Tensor, w: QuantizedTensor, kind: ProductKind): Tensor {
  const { isTransposed, isFast } = kind;
  const lead = x.shape.slice(0, -1);
  const shape = [...lead, w.shape[isTransposed ? 1 : 0]!];
  const attributes = { ...attributesOf(w), rows: w.shape[0]!, count: elementCount(lead), ...kind };
  const own = x.rank <= 2 ? x : noGrad(() => contiguous(x));
  const primitive = isFast ? fastPrimitive : exactPrimitive;
  const output = execute(primitive, [own, ...weightInputs(w)], shape, x.dtype, attributes, operation);
  if (own !== x) own.dispose();
  if (x.requiresGrad)
    record(operation, [x], [output], [], ([gradient]) => [
      product(operation, gradient!, w, { isTransposed: !isTransposed, isFast: false }),
    ]);
  return output;
}
