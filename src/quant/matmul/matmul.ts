import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
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

/** How x is multiplied: as it is, or in 8 bits a value with a scale for each 32. */
export type ProductPrecision = "exact" | "fast";

/** Options of {@link quantizedMatmul}. */
export interface QuantizedMatmulOptions {
  /** `"fast"`: x may be rounded to 8 bits. Default `"exact"`. */
  precision?: ProductPrecision | undefined;
  /** [out]: is added to each row of the result, as `add` does. It is converted to the dtype of x. Default null. */
  bias?: Tensor | null | undefined;
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

/** @internal Weights of floats have no levels to multiply with bytes. */
export const hasLevels = ({ format }: QuantizedTensor): boolean => format !== "f16" && format !== "bf16";

const declared = {
  ...{ x: operand(aTensor), w: operand(aQuantizedTensor) },
  precision: named(aPrecision, "exact"),
  bias: named(either(aTensor, nothing), null),
} as const;
const quantizedMatmulParameters = parameters("quantizedMatmul", declared);
const matmulInt4Parameters = parameters("matmulInt4", declared);
const matmulGgmlParameters = parameters("matmulGgml", declared);

/**
 * The product x Wᵀ + bias with quantised weights, as a linear layer computes it. Weights are unpacked a block at a time
 * and never as a whole; sums are in float32. Weights are frozen: x has gradients, of every order, by products that read
 * the quantised weights too, and so has the bias.
 *
 * @param x […, in], of float32, float16 or bfloat16, with any number of rows
 * @param w [out, in], of any format
 * @param options `precision`: `"fast"` lets x be rounded to 8 bits, so that bytes are multiplied with bytes: each 32
 * adjacent values of a row get the scale max|x| / 127. A row with a value that is not finite has NaN as its result.
 * cpu and reference do so with weights of every format but `f16` and `bf16`; metal computes as exactly as ever.
 * `codepaths()` counts such products as `quantizedMatmulFast`. Gradients are those of the exact product. `bias` [out]
 * gives the bits of `add(product, bias)` in the same pass
 * @returns […, out], of the dtype of `x`
 *
 * @example
 * const w = quantize(randn([128, 256]), { bits: 4 });
 * quantizedMatmul(randn([3, 256]), w); // float32[3, 128]
 *
 * @throws {ShapeError} `wrongRank`, for weights that are no matrix; `shapesDiffer`, where x has another last axis than
 * W, or the bias another size than its rows. @throws {DTypeError} for another dtype of x, or of the bias.
 * @throws {DisposedError}
 */
export function quantizedMatmul(x: Tensor, w: QuantizedTensor, options?: QuantizedMatmulOptions): Tensor;
export function quantizedMatmul(...values: unknown[]): Tensor {
  return checkedProduct("quantizedMatmul", quantizedMatmulParameters(values));
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
  const own = matmulInt4Parameters(values);
  checkInt4("matmulInt4", own.w);
  return checkedProduct("matmulInt4", own);
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
  const own = matmulGgmlParameters(values);
  checkGgml("matmulGgml", own.w);
  return checkedProduct("matmulGgml", own);
}

type Operands = ReturnType<typeof quantizedMatmulParameters>;

function checkedProduct(operation: string, { x, w, precision, bias }: Operands): Tensor {
  checkProduct(operation, x, w, "w");
  const own = bias && biasFor(operation, "bias", bias, x, w.shape[0]!);
  return product(operation, x, w, { isTransposed: false, isFast: precision === "fast" && hasLevels(w) }, own);
}

/** @internal Whether x and weights can be multiplied. @throws {DTypeError} @throws {ShapeError} */
export function checkProduct(operation: string, x: Tensor, w: QuantizedTensor, name: string): void {
  checkFloat(operation, "x", x);
  if (w.rank !== 2)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected ${name} to be a matrix [out, in], got [${w.shape.join(", ")}]`,
    );
  const columns = w.shape[1]!;
  if (x.rank === 0 || x.shape.at(-1) !== columns)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected x to have ${columns} values along its last axis, as a row of ${name} has, got ${x.describe()}`,
    );
}

/** @internal A bias of so many rows of weights in the dtype of x. @throws {DTypeError} @throws {ShapeError} */
export function biasFor(operation: string, name: string, bias: Tensor, x: Tensor, rows: number): Tensor {
  checkFloat(operation, name, bias);
  if (bias.rank !== 1 || bias.size !== rows)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected ${name} to be [${rows}], a value for each row of the weights, got ${bias.describe()}`,
    );
  return bias.dtype === x.dtype ? bias : (toDType(bias, x.dtype) as Tensor);
}

function checkFloat(operation: string, name: string, { dtype }: Tensor): void {
  if (scaleDTypes.some((own) => own === dtype)) return;
  throw new DTypeError(
    operation,
    "unsupportedDType",
    `expected ${name} to be one of ${scaleDTypes.join(", ")}, got ${dtype}; toDType(${name}, "float32") converts`,
  );
}

type ProductKind = Pick<ProductAttributes, "isTransposed" | "isFast">;

/** @internal x Wᵀ + bias, or x W; each product is the gradient of the other. */
export function product(
  operation: string,
  x: Tensor,
  w: QuantizedTensor,
  kind: ProductKind,
  bias: Tensor | null = null,
): Tensor {
  const { isTransposed, isFast } = kind;
  const lead = x.shape.slice(0, -1);
  const shape = [...lead, w.shape[isTransposed ? 1 : 0]!];
  const hasBias = bias !== null;
  const attributes = { ...attributesOf(w), rows: w.shape[0]!, count: elementCount(lead), ...kind, hasBias };
  const output = executeOnRows(x, hasBias ? [bias] : [], (own, biases) =>
    execute(
      isFast ? fastPrimitive : exactPrimitive,
      [own, ...weightInputs(w), ...biases],
      ...([shape, x.dtype, attributes, operation] as const),
    ),
  );
  const gradientOfX = (g: Tensor) => product(operation, g, w, { isTransposed: !isTransposed, isFast: false });
  if (bias === null) record(operation, [x], [output], [], ([g]) => [gradientOfX(g!)]);
  else
    record(operation, [x, bias], [output], [], ([g], _, needs) => [
      needs[0] ? gradientOfX(g!) : null,
      needs[1] ? sumTo(g!, [shape.at(-1)!]) : null,
    ]);
  return output;
}

/** @internal Runs a primitive on rows of x and dense biases. x is copied where more than two axes have strides. */
export function executeOnRows<Output extends Tensor | Tensor[]>(
  x: Tensor,
  biases: readonly Tensor[],
  body: (x: Tensor, biases: readonly Tensor[]) => Output,
): Output {
  const own = layoutOfRows(x) === undefined ? noGrad(() => contiguous(x)) : x;
  const dense = biases.map((bias) => noGrad(() => contiguous(bias)));
  const output = body(own, dense);
  if (own !== x) own.dispose();
  for (const [at, bias] of dense.entries()) if (bias !== biases[at]) bias.dispose();
  return output;
}
