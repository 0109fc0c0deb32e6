/** Sampling of images and volumes at arbitrary positions. */
import { noGrad } from "../../autograd/modes.ts";
import { checkElements, underName } from "../../backend/dispatch.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { choice, flag, listOf, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { reserve } from "../../tensor/reserve.ts";
import { checkShape, elementCount } from "../../tensor/shape.ts";
import { byteLengthOf, type Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { checkOperands } from "../convolution/geometry.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { abs, add, mul, sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { eq, ge, le } from "../elementwise/comparison.ts";
import { fmod } from "../elementwise/division.ts";
import { logicalAnd } from "../elementwise/logic.ts";
import { isnan } from "../elementwise/predicates.ts";
import { floor, round } from "../elementwise/rounding.ts";
import { where } from "../elementwise/where.ts";
import { detach } from "../gradient/backward.ts";
import { gatherAlong } from "../indexing/adjoint.ts";
import { stack } from "../join/cat.ts";
import { plainMatmul as matmul } from "../matmul/plain_matmul.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { transpose } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { select } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { affinePositions } from "./affine_grid.cpu.ts";
import { fusesGrid, sampledImages } from "./grid_sample.cpu.ts";

/** Options of {@link gridSample}. */
export interface GridSampleOptions {
  /** The interpolation between elements; `"bicubic"` requires images. Default `"bilinear"`. */
  mode?: "bilinear" | "nearest" | "bicubic" | undefined;
  /** The values outside the border: zeros, the border itself, or reflections at it. Default `"zeros"`. */
  paddingMode?: "zeros" | "border" | "reflection" | undefined;
  /** Whether −1 and 1 are the centers of the first and last elements instead of their outer edges. Default false. */
  alignCorners?: boolean | undefined;
}

/**
 * Samples images or volumes at given positions, which are between −1 and 1 along each axis. Both inputs get gradients;
 * that of the positions is 0 in mode `"nearest"`. A NaN position gives NaN, or the first element if the padding mode
 * repeats the border, as in PyTorch. PyTorch's `grid_sample`.
 *
 * @param x [batch, channels, height, width] or [batch, channels, depth, height, width]
 * @param grid [batch, height', width', 2] or [batch, depth', height', width', 3]: x, y and z, the last axis of x first
 * @returns [batch, channels, …] with the axes of the grid
 *
 * @example
 * gridSample(tensor([[[[1, 3]]]]), tensor([[[[0, 0]]]])); // float32 [[[[2]]]]
 *
 * @throws {ShapeError} if shapes do not match.
 * @throws {DTypeError} if dtypes differ or are not floats.
 * @throws {ArgumentError} for mode `"bicubic"` with volumes.
 */
export function gridSample<D extends DType>(
  x: Tensor<D>,
  grid: Tensor<D>,
  ...options: Given<GridSampleOptions, ["mode", "paddingMode", "alignCorners"]>
): Tensor<D>;
export function gridSample(...values: unknown[]): Tensor {
  const { x, grid, ...options } = gridSampleParameters(values);
  checkOperands("gridSample", [x, grid]);
  checkGrid(x, grid);
  if (options.mode === "bicubic" && x.rank !== 4)
    throw new ArgumentError("gridSample", "invalidMode", `expected images for mode "bicubic", got ${x.describe()}`);
  const { mode, paddingMode: border, alignCorners: alignsCorners } = options;
  return underName("gridSample", () =>
    tidy(() =>
      fusesGrid(x, grid)
        ? sampledImages(x, grid, { mode, border, alignsCorners }, (a, b) => sampled(a, b, options))
        : sampled(x, grid, options),
    ),
  );
}
const gridSampleParameters = parameters("gridSample", {
  x: operand(aTensor),
  grid: operand(aTensor),
  mode: optional(choice("bilinear", "nearest", "bicubic"), "bilinear"),
  paddingMode: optional(choice("zeros", "border", "reflection"), "zeros"),
  alignCorners: optional(flag, false),
});
type Options = Omit<ReturnType<typeof gridSampleParameters>, "x" | "grid">;

function checkGrid(x: Tensor, grid: Tensor): void {
  const rank = x.rank - 2;
  if (rank !== 2 && rank !== 3)
    throw new ShapeError(
      "gridSample",
      "wrongRank",
      `expected x to be [batch, channels, height, width] or […, depth, height, width], got ${x.describe()}`,
    );
  if (grid.rank !== x.rank || grid.shape[0] !== x.shape[0] || grid.shape.at(-1) !== rank)
    throw new ShapeError(
      "gridSample",
      "shapesDiffer",
      `expected grid to be [${x.shape[0]}, …, ${rank}] with ${x.rank} axes, got ${grid.describe()}`,
    );
  if (x.shape.slice(2).includes(0))
    throw new ShapeError("gridSample", "noElements", `expected elements along all axes, got ${x.describe()}`);
}

/** One element along an axis for each position of the grid: its index, its weight, and whether it is inside x. */
interface Tap {
  readonly place: Tensor<"int64">;
  readonly weight: Tensor | undefined;
  readonly isInside: Tensor<"bool"> | undefined;
}

function sampled(x: Tensor, grid: Tensor, options: Options): Tensor {
  const wide = accumulationDType(x.dtype);
  const [batch, channels, ...sizes] = x.shape;
  const places = grid.shape.slice(1, -1);
  const count = elementCount(places);
  const wideGrid = toDType(grid, wide);
  const flat = reshape(toDType(x, wide), [batch, channels, elementCount(sizes)]);
  const taps = sizes.map((size, axis) => {
    const along = reshape(select(wideGrid, -1, sizes.length - 1 - axis), [batch, count]);
    return tapsOf(along, size, options);
  });
  const terms = combinations(taps).map((combination) => {
    const place = combination.reduce(
      (sum, tap, axis) => add(mul(sum, BigInt(sizes[axis])), tap.place),
      filled([batch, count], "int64", 0n),
    );
    const index = expand(unsqueeze(place, 1), [batch, channels, count]);
    const insides = combination.flatMap(({ isInside }) => isInside ?? []);
    const taken = gatherAlong("gridSample", flat, index, 2);
    const isInside = insides.reduce<Tensor<"bool"> | undefined>((a, b) => (a ? logicalAnd(a, b) : b), undefined);
    const there = isInside ? where(unsqueeze(isInside, 1), taken, 0) : taken;
    return combination
      .flatMap(({ weight }) => weight ?? [])
      .reduce((product, weight) => mul(product, unsqueeze(weight, 1)), there);
  });
  const total = terms.reduce((sum, term) => add(sum, term));
  return toDType(reshape(total, [batch, channels, ...places]), x.dtype);
}

/** Returns all combinations of one tap along each axis. */
const combinations = (taps: readonly (readonly Tap[])[]): Tap[][] =>
  taps.reduce<Tap[][]>((all, axisTaps) => all.flatMap((before) => axisTaps.map((tap) => [...before, tap])), [[]]);

function tapsOf(grid: Tensor, size: number, { mode, paddingMode, alignCorners }: Options): Tap[] {
  const scaled = alignCorners ? mul(add(grid, 1), (size - 1) / 2) : mul(sub(mul(add(grid, 1), size), 1), 0.5);
  const bounded = (at: Tensor): Tensor => withinBorders(at, size, paddingMode, alignCorners);
  const tap = (at: Tensor, weight?: Tensor): Tap => {
    const { place, isInside } = noGrad(() => ({
      place: toDType(clamp(at, { min: 0, max: size - 1 }), "int64"),
      isInside: paddingMode === "zeros" ? logicalAnd(ge(at, 0), le(at, size - 1)) : undefined,
    }));
    return { place, weight, isInside };
  };
  if (mode === "nearest") {
    const nearest = clamp(round(bounded(scaled)), { min: -1, max: size });
    const one = where(isnan(nearest), 1, add(sub(nearest, detach(nearest)), 1)); // constant 1 with gradient 0
    return [tap(nearest, one)];
  }
  if (mode === "bicubic") {
    const first = detach(floor(scaled));
    const part = sub(scaled, first);
    return [-1, 0, 1, 2].map((shift) => tap(bounded(add(first, shift)), cubicWeight(part, shift)));
  }
  const at = bounded(scaled);
  const first = detach(floor(at));
  const part = sub(at, first);
  return [tap(first, sub(1, part)), tap(add(first, 1), part)];
}

/** Keys' cubic kernel with a = −3/4, at the distance from the tap that is `shift` after the first one. */
function cubicWeight(part: Tensor, shift: number): Tensor {
  const a = -0.75;
  const x = shift <= 0 ? sub(part, shift) : sub(shift, part);
  const near = add(mul(mul(sub(mul(x, a + 2), a + 3), x), x), 1);
  const far = sub(mul(add(mul(sub(mul(x, a), 5 * a), x), 8 * a), x), 4 * a);
  return shift === 0 || shift === 1 ? near : far;
}

function withinBorders(at: Tensor, size: number, mode: Options["paddingMode"], alignCorners: boolean): Tensor {
  if (mode === "zeros") return at;
  const reflected = mode === "border" ? at : alignCorners ? mirrored(at, 0, size - 1) : mirrored(at, -0.5, size - 0.5);
  return clamp(where(isnan(reflected), 0, reflected), { min: 0, max: size - 1 });
}

/** Reflects positions at the borders. */
function mirrored(at: Tensor, low: number, high: number): Tensor {
  const span = high - low;
  if (span === 0) return mul(at, 0);
  const distance = abs(sub(at, low));
  const beyond = fmod(distance, span);
  const isEven = eq(fmod(detach(floor(mul(sub(distance, beyond), 1 / span).add(0.5))), 2), 0);
  return where(isEven, add(beyond, low), sub(span + low, beyond));
}

/** Options of {@link affineGrid}. */
export interface AffineGridOptions {
  /** As in {@link gridSample}. Default false. */
  alignCorners?: boolean | undefined;
}

/**
 * Computes the positions for {@link gridSample} from an affine map of an image or volume.
 *
 * @param theta [batch, 2, 3] or [batch, 3, 4]: the matrix, and the translation in the last column
 * @param size the shape of the result: [batch, channels, height, width] or [batch, channels, depth, height, width]
 * @returns [batch, height, width, 2] or [batch, depth, height, width, 3]
 *
 * @example
 * affineGrid(tensor([[[1, 0, 0], [0, 1, 0]]]), [1, 1, 1, 2]); // float32 [[[[-0.5, 0], [0.5, 0]]]]
 *
 * @throws {ShapeError} if shapes do not match.
 * @throws {DTypeError} if theta is not of a float dtype.
 * @throws {ArgumentError} for sizes below 1.
 */
export function affineGrid<D extends DType>(
  theta: Tensor<D>,
  size: readonly number[],
  ...options: Given<AffineGridOptions, ["alignCorners"]>
): Tensor<D>;
export function affineGrid(...values: unknown[]): Tensor {
  const { theta, size, alignCorners } = affineGridParameters(values);
  checkOperands("affineGrid", [theta]);
  const shape = checkShape("affineGrid", size);
  const rank = shape.length - 2;
  const [batch, ...sizes] = [shape[0], ...shape.slice(2)];
  const fits = theta.rank === 3 && theta.shape[0] === batch && theta.shape[1] === rank && theta.shape[2] === rank + 1;
  if ((rank !== 2 && rank !== 3) || !fits)
    throw new ShapeError(
      "affineGrid",
      "shapesDiffer",
      `expected theta to be [batch, 2, 3] for a size of 4 axes, or [batch, 3, 4] for 5 axes, got ${theta.describe()} ` +
        `and [${shape.join(", ")}]`,
    );
  if (shape.some((each) => each === 0))
    throw new ArgumentError("affineGrid", "invalidSize", `expected sizes above 0, got [${shape.join(", ")}]`);
  checkElements("affineGrid", [theta]);
  return underName("affineGrid", () =>
    tidy(() => {
      reserve(byteLengthOf([batch, ...sizes, rank], theta.dtype));
      if (fusesOnCpu(theta) && theta.size > 0) return affinePositions(theta, sizes, alignCorners);
      const wide = accumulationDType(theta.dtype);
      const base = basePoints(sizes, alignCorners, wide);
      const points = matmul(base, transpose(toDType(theta, wide), 1, 2));
      return toDType(reshape(points, [batch, ...sizes, rank]), theta.dtype);
    }),
  );
}
const affineGridParameters = parameters("affineGrid", {
  theta: operand(aTensor),
  size: required(listOf(someNumber, "a list of sizes")),
  alignCorners: optional(flag, false),
});

/** Returns the centers of all elements, with the last axis first and a 1 appended: [1, elements, axes + 1]. */
function basePoints(sizes: readonly number[], alignCorners: boolean, dtype: "float32" | "float64"): Tensor {
  const middle = (size: number, at: number): number =>
    size === 1 ? 0 : (alignCorners ? 1 : (size - 1) / size) * ((2 * at) / (size - 1) - 1);
  const columns = sizes.map((size, axis) => {
    const centers = tensor(
      Float64Array.from({ length: size }, (_, at) => middle(size, at)),
      { dtype },
    );
    const along = sizes.map((_, other) => (other === axis ? size : 1));
    return reshape(expand(reshape(centers, along), sizes), [elementCount(sizes)]);
  });
  return unsqueeze(stack([...columns.toReversed(), filled([elementCount(sizes)], dtype, 1)], 1), 0);
}
