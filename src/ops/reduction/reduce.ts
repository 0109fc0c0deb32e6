/** The common parts of reductions: primitives, axes, errors. */
import { execute, executeMany } from "../../backend/dispatch.ts";
import { byName } from "../../backend/enumeration.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { axes, flag } from "../../core/kinds.ts";
import { operand, optional, parameters } from "../../core/parameters.ts";
import { type DType, isComplex, isFloat } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxes, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { checkDType } from "../creation/create.ts";
import type { FoldName } from "./folds.ts";
import {
  type ExtremumName,
  extremumNames,
  foldNames,
  type ReductionAttributes,
  type ReductionName,
} from "./primitive.ts";
import { reduceCpu } from "./reduce.cpu.ts";
import { extremumMetal, foldMetal } from "./reduce.metal.ts";
import { extremumReference, foldReference } from "./reduce.reference.ts";

const folds = byName(foldNames, (name) =>
  definePrimitive<ReductionAttributes>({
    name,
    family: "reduction",
    implementations: { metal: foldMetal(name), cpu: reduceCpu(name), reference: foldReference(name) },
  }),
);
const extrema = byName(extremumNames, (name) =>
  definePrimitive<ReductionAttributes>({
    name,
    family: "reduction",
    implementations: { metal: extremumMetal(name), cpu: reduceCpu(name), reference: extremumReference(name) },
  }),
);

/** Options of reductions over any axes. */
export interface ReductionOptions {
  /** Axes to reduce. Negative values count from the end. Default, and for `[]`: all axes. */
  dim?: number | readonly number[] | undefined;
  /** Whether to keep the reduced axes with size 1. Default false. */
  keepdim?: boolean | undefined;
}

/** The axes of a reduction and the shape of its result. */
export interface ReductionPlan {
  readonly axes: readonly number[];
  /** The result's shape with the reduced axes kept as size 1. */
  readonly kept: Shape;
  readonly shape: Shape;
  /** The number of elements reduced to one. */
  readonly count: number;
}

/**
 * Arguments of {@link ReductionOptions}, or of options that extend it: in an object, or the axes and `keepdim` by
 * position.
 */
export type ReductionArguments<O extends ReductionOptions = ReductionOptions> =
  | [options?: O]
  | [dim: O["dim"], options?: Omit<O, "dim">]
  | [dim: O["dim"], keepdim: boolean | undefined, options?: Omit<O, "dim" | "keepdim">];

/** Declares the parameters of a reduction over any axes, for the named operation. */
export const reductionParameters = (operation: string) => parameters(operation, axesParameters);

/** The parameters of a reduction over any axes. */
export const axesParameters = { x: operand(aTensor), dim: optional(axes), keepdim: optional(flag, false) } as const;

/** Plans a reduction over axes. @throws {ShapeError} for an axis out of range or given twice. */
export function planReduction(operation: string, x: Tensor, { dim, keepdim = false }: ReductionOptions): ReductionPlan {
  x.checkAlive(operation);
  const reduced = normalizeAxes(operation, typeof dim === "object" && dim.length === 0 ? undefined : dim, x.rank);
  const sizes = plainList(x.shape);
  const [kept, shape]: [number[], number[]] = [[], []];
  let count = 1;
  for (let axis = 0; axis < sizes.length; axis++) {
    const size = sizes[axis];
    const isReduced = reduced.includes(axis);
    if (isReduced) count *= size;
    else shape.push(size);
    kept.push(isReduced ? 1 : size);
  }
  return { axes: reduced, kept, shape: keepdim ? kept : shape, count };
}

/** Minimum number of elements. Smaller reductions take no longer than creating the view for {@link isOfOne}. */
const FEWEST = 512;

/**
 * Whether each result has only one element, because the reduced axes have size 1. A copy is then faster than a
 * reduction.
 */
export const isOfOne = ({ size }: Tensor, { axes, count }: ReductionPlan): boolean =>
  count === 1 && axes.length > 0 && size >= FEWEST;

/** Runs a reduction with one result. */
export const fold = <D extends DType>(
  name: FoldName,
  x: Tensor,
  plan: ReductionPlan,
  dtype: D,
  parameter = 0,
): Tensor<D> => execute(folds[name], [x], plan.shape, dtype, { axes: plan.axes, parameter });

/** Runs a reduction that returns values and indices. */
export const extremum = (name: ExtremumName, x: Tensor, plan: ReductionPlan): Tensor[] => {
  const { shape } = plan;
  const specs = [
    { shape, dtype: x.dtype },
    { shape, dtype: "int64" as const },
  ];
  return executeMany(extrema[name], [x], specs, { axes: plan.axes, parameter: 0 });
};

/**
 * Checks that slices have elements. @throws {ShapeError} if a result has no elements to reduce and the reduction is
 * undefined for that.
 */
export function refuseEmpty(operation: string, x: Tensor, { count, shape }: ReductionPlan): void {
  if (count > 0 || shape.includes(0)) return;
  throw new ShapeError(
    operation,
    "emptyReduction",
    `${x.describe()} has no elements along the reduced axes, so ${operation} is undefined; expected at least one`,
  );
}

/**
 * Converts the tensor to `dtype`, or checks that it has floats.
 * @throws {DTypeError} if `dtype`, or else its dtype, is not a float.
 */
export function floatOperand(
  operation: ReductionName | string,
  x: Tensor,
  dtype?: DType,
  takesComplex = false,
): Tensor {
  x.checkAlive(operation);
  const target = dtype ?? x.dtype;
  checkDType(operation, target);
  if (isFloat(target) || (takesComplex && isComplex(target))) return toDType(x, target);
  const given = dtype === undefined ? x.describe() : `dtype ${dtype}`;
  throw new DTypeError(
    operation,
    "notAFloat",
    `expected floats, got ${given}; pass { dtype: "float32" } or convert with toDType(x, "float32")`,
  );
}
