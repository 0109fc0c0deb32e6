/** Weights of integer products: levels with one scale, or with one scale per row and smoothed columns. */
import { DTypeError, ShapeError } from "../../core/errors.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/**
 * Weights with one scale and one zero point for the whole matrix: W ≈ scale · (level − zero).
 *
 * @example
 * const weights = quantizePerTensor(w, { bits: 8 }); // w: float32 [out, in]
 * matmulPerTensor(x, weights); // [..., out]
 */
export class PerTensorWeights {
  /** @internal */
  constructor(
    /** uint8 [out, in] */
    readonly levels: Tensor<"uint8">,
    readonly scale: number,
    readonly zero: number,
    readonly bits: number,
  ) {}
}

/**
 * SmoothQuant's weights: W[i, j] · smoothing[j] ≈ scales[i] · levels[i, j].
 *
 * @example
 * const weights = smoothQuantize(w, ranges); // w: float32 [out, in]; ranges: float32 [in]
 * matmulSmooth(x, weights); // [..., out]
 */
export class SmoothWeights {
  /** @internal */
  constructor(
    /** int8 [out, in] */
    readonly levels: Tensor<"int8">,
    /** float32 [out] */
    readonly scales: Tensor<"float32">,
    /** float32 [in]: x is divided by it. */
    readonly smoothing: Tensor<"float32">,
  ) {}
}

/**
 * Checks that a weight is a matrix of floats.
 *
 * @throws {ShapeError} `wrongRank`
 * @throws {DTypeError} `notAFloat`
 */
export function checkMatrix(operation: string, w: Tensor): void {
  if (w.rank !== 2) throw new ShapeError(operation, "wrongRank", `expected w to be a matrix, got ${w.describe()}`);
  if (w.dtype !== "float32" && w.dtype !== "float16" && w.dtype !== "bfloat16" && w.dtype !== "float64")
    throw new DTypeError(operation, "notAFloat", `expected w to have a float dtype, got ${w.dtype}`);
}

/**
 * Checks that x is float32 with rows of `columns`. @throws {ShapeError} `shapesDiffer` @throws {DTypeError}
 * `unsupportedDType`
 */
export function checkRows(operation: string, x: Tensor, columns: number): void {
  if (x.dtype !== "float32")
    throw new DTypeError(
      operation,
      "unsupportedDType",
      `expected x to be float32, got ${x.dtype}; convert with toDType(x, "float32")`,
    );
  if (x.rank === 0 || x.shape.at(-1) !== columns)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected x to have ${columns} values along its last axis, as many as w has columns, got ${x.describe()}`,
    );
}
