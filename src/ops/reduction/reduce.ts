/** What every reduction shares: its primitive, its axes, its errors. */
import type { Primitive } from "../../backend/backend.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { normalizeAxes, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { checkDType } from "../creation/create.ts";
import {
  type ExtremumName,
  extremumNames,
  type FoldName,
  foldNames,
  type ReductionAttributes,
  type ReductionName,
} from "./names.ts";
import { reduceCpu } from "./reduce.cpu.ts";
import { extremumMetal, foldMetal } from "./reduce.metal.ts";
import { extremumReference, foldReference } from "./reduce.reference.ts";

type ReductionPrimitive = Primitive<ReductionAttributes>;

const folds = new Map<FoldName, ReductionPrimitive>(
  foldNames.map((name) => [
    name,
    { name, implementations: { metal: foldMetal(name), cpu: reduceCpu(name), reference: foldReference(name) } },
  ]),
);
const extrema = new Map<ExtremumName, ReductionPrimitive>(
  extremumNames.map((name) => [
    name,
    { name, implementations: { metal: extremumMetal(name), cpu: reduceCpu(name), reference: extremumReference(name) } },
  ]),
);

/** Options of reductions over any axes. */
export interface ReductionOptions {
  /** Axes to reduce, negative ones counted from the back; default (and `[]`) all. */
  dim?: number | readonly number[] | undefined;
  /** Keep them with size 1. Default false. */
  keepdim?: boolean | undefined;
}

/** The axes of a reduction, and the shapes of its result. */
export interface ReductionPlan {
  readonly axes: readonly number[];
  /** With the reduced axes of size 1. */
  readonly kept: Shape;
  readonly shape: Shape;
  /** Elements that become one. */
  readonly count: number;
}

/** @throws {ShapeError} for an axis out of range, or twice. */
export function planReduction(operation: string, x: Tensor, { dim, keepdim = false }: ReductionOptions): ReductionPlan {
  x.checkAlive(operation);
  const axes = normalizeAxes(operation, typeof dim === "object" && dim.length === 0 ? undefined : dim, x.rank);
  const kept = x.shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
  return {
    axes,
    kept,
    shape: keepdim ? kept : x.shape.filter((_, axis) => !axes.includes(axis)),
    count: axes.reduce((product, axis) => product * x.shape[axis]!, 1),
  };
}

/** Runs a reduction with one result. */
export const fold = (name: FoldName, x: Tensor, plan: ReductionPlan, dtype: DType, parameter = 0): Tensor =>
  execute(folds.get(name)!, [x], plan.shape, dtype, { axes: plan.axes, parameter });

/** Runs a reduction to values and indices. */
export const extremum = (name: ExtremumName, x: Tensor, plan: ReductionPlan): Tensor[] => {
  const { shape, axes } = plan;
  const specs = [
    { shape, dtype: x.dtype },
    { shape, dtype: "int64" as const },
  ];
  return executeMany(extrema.get(name)!, [x], specs, { axes, parameter: 0 });
};

/** @throws {ShapeError} where there is nothing of which to take the largest. */
export function refuseEmpty(operation: string, x: Tensor, { count, shape }: ReductionPlan): void {
  if (count > 0 || shape.includes(0)) return;
  throw new ShapeError(
    operation,
    "emptyReduction",
    `${x.describe()} has no elements along the reduced axes, and ${operation} of nothing has no value; at least one is wanted`,
  );
}

/** The tensor as floats. @throws {DTypeError} where it has none and no float dtype was asked for. */
export function floatOperand(operation: ReductionName | string, x: Tensor, dtype: DType | undefined): Tensor {
  x.checkAlive(operation);
  const wanted = dtype ?? x.dtype;
  checkDType(operation, wanted);
  if (isFloat(wanted)) return toDType(x, wanted);
  throw new DTypeError(
    operation,
    "notAFloat",
    `floats are wanted, ${dtype === undefined ? x.describe() : `dtype ${dtype}`} came; pass { dtype: "float32" } or convert with toDType(x, "float32")`,
  );
}
