/** The calls of `allReduce` and `reduceScatter`, which combine the elements of all ranks. */
import { noGrad } from "../autograd/modes.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { toDType } from "../ops/copy/cast.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { checkTarget } from "../ops/copy/inplace.ts";
import { div } from "../ops/elementwise/division.ts";
import { detach } from "../ops/gradient/backward.ts";
import { type DType, isFloat } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import { type Reduction, wireTypeOf } from "./abi.ts";
import type { Call } from "./call.ts";
import { fromKeys, toKeys } from "./extremes.ts";
import { elementsOf, ownCopy, ownEmpty } from "./memory.ts";
import type { Elements } from "./mpi.ts";
import { worldOf } from "./world.ts";

/** A reduction over all ranks. */
export type ReduceOp = "sum" | "mean" | "max" | "min";

/** Returns MPI's reduction. A mean is a sum followed by a division. */
const reductionOf = (op: ReduceOp): Reduction => (op === "mean" ? "sum" : op);

/** 16-bit floats are reduced in float32. */
const reducedDType = (dtype: DType): DType => (dtype === "float16" || dtype === "bfloat16" ? "float32" : dtype);

/** Returns the call of `allReduce`. @throws {DTypeError} @throws {ArgumentError} @throws {AutogradError} */
export function allReduceCall(operation: string, x: Tensor, op: ReduceOp, inPlace: boolean): Call {
  checkOp(operation, x, op);
  if (inPlace) checkTarget(operation, x, []);
  const reduction = reductionOf(op);
  const isDirect = inPlace && x.isContiguous && x.storage.memory.device === "host" && x.dtype === reducedDType(x.dtype);
  const sum = isDirect ? keep(noGrad(() => detach(x))) : ownCopy(x, reducedDType(x.dtype));
  return {
    operation,
    x,
    from: sum,
    description: `allReduce ${x.describe()} ${op}`,
    *steps({ mpi, everyone }) {
      toWire(sum, reduction);
      yield mpi.allReduce(operation, everyone, reducible(operation, sum, reduction), reduction);
      fromWire(sum, reduction);
      return finished(sum, op, x.dtype);
    },
    alone: () => finished(sum, op, x.dtype),
    target: inPlace ? (result) => into(x, result, isDirect) : undefined,
  };
}

/** Writes a result to the caller's tensor, unless it is already there. */
function into(x: Tensor, result: Tensor, isThere: boolean): Tensor {
  if (!isThere || result.storage !== x.storage) copyInto(x, result);
  else x.storage.version++;
  result.dispose();
  return x;
}

/** Whether elements are replaced by integer keys for the comparison, as floats are. */
const hasKeys = (x: Tensor, reduction: Reduction): boolean => reduction !== "sum" && isFloat(x.dtype);

const toWire = (x: Tensor, reduction: Reduction): void => {
  if (hasKeys(x, reduction)) toKeys(x, reduction);
};

const fromWire = (x: Tensor, reduction: Reduction): void => {
  if (hasKeys(x, reduction)) fromKeys(x, reduction);
};

function reducible(operation: string, x: Tensor, reduction: Reduction): Elements {
  const keys = x.dtype === "float64" ? "int64" : "int32";
  return elementsOf(operation, x, hasKeys(x, reduction) ? keys : wireTypeOf(operation, x));
}

/** Returns the result in the caller's dtype, divided for a mean. Takes ownership of its argument. */
function finished(reduced: Tensor, op: ReduceOp, dtype: DType): Tensor {
  const { worldSize } = worldOf("allReduce");
  let result = reduced;
  if (op === "mean" && worldSize > 1) result = replaced(result, (sum) => div(sum, worldSize));
  if (result.dtype !== dtype) result = replaced(result, (wide) => toDType(wide, dtype));
  return result;
}

function replaced(local: Tensor, by: (operand: Tensor) => Tensor): Tensor {
  const result = noGrad(() => keep(by(local)));
  local.dispose();
  return result;
}

/** @throws {DTypeError} @throws {ArgumentError} */
function checkOp(operation: string, x: Tensor, op: ReduceOp): void {
  if (op === "mean" && !isFloat(x.dtype))
    throw new DTypeError(operation, "notAFloat", `expected a float dtype for op "mean", got ${x.describe()}`);
  if (op === "sum" && x.dtype === "bool")
    throw new DTypeError(
      operation,
      "isBool",
      `expected a numeric dtype for op "sum", got ${x.describe()}; for bool, use "max" (any) or "min" (all)`,
    );
  if ((op === "max" || op === "min") && x.requiresGrad)
    throw new ArgumentError(operation, "noGradient", `op "${op}" has no gradient; pass x.detach()`);
}

/** Returns the call of `reduceScatter`. @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError} */
export function reduceScatterCall(operation: string, x: Tensor, op: ReduceOp): Call {
  checkOp(operation, x, op);
  const { worldSize } = worldOf(operation);
  const shape = partShape(operation, x, worldSize);
  const reduction = reductionOf(op);
  const sum = ownCopy(x, reducedDType(x.dtype));
  return {
    operation,
    x,
    from: sum,
    description: `reduceScatter ${x.describe()} ${op}`,
    *steps({ mpi, everyone }) {
      toWire(sum, reduction);
      const part = ownEmpty(shape, sum.dtype, operation);
      const [from, to] = [sum, part].map((each) => reducible(operation, each, reduction));
      yield mpi.reduceScatter(operation, everyone, from, to, reduction);
      sum.dispose();
      fromWire(part, reduction);
      return finished(part, op, x.dtype);
    },
    alone: () => finished(sum, op, x.dtype),
  };
}

/** @internal Returns the shape of one of `parts` equal parts along the first axis. @throws {ShapeError} */
export function partShape(operation: string, x: Tensor, parts: number): number[] {
  const [rows, ...others] = x.shape;
  if (rows !== undefined && rows % parts === 0) return [rows / parts, ...others];
  throw new ShapeError(
    operation,
    "notDivisible",
    `expected the first axis of x to be a multiple of the ${parts} ranks, got ${x.describe()}`,
  );
}
