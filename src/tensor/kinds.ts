/** Kinds of parameters for tensors, scalars, dtypes and shapes. */
import { describeValue } from "../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { isListed, listOf } from "../core/kinds.ts";
import type { Kind } from "../core/parameters.ts";
import { complexDTypes, type DType, dtypes, isDType } from "./dtype.ts";
import { plainList } from "./frozen.ts";
import type { Scalar } from "./promotion.ts";
import type { Shape } from "./shape.ts";
import { Tensor } from "./tensor.ts";

/** A tensor that is not disposed. */
export const aTensor: Kind<Tensor> = {
  expected: "a tensor",
  parse(value, operation) {
    if (!Tensor.isTensor(value)) return undefined;
    value.checkAlive(operation);
    return value;
  },
};

/** @internal Rejects values that are not tensors without reading them. @throws {ArgumentError} `invalidOperand` */
export function expectTensor(operation: string, name: string, value: unknown): void {
  if (aTensor.parse(value, operation, name) === undefined)
    throw new ArgumentError(
      operation,
      "invalidOperand",
      `expected ${name} to be a tensor, got ${describeValue(value)}`,
    );
}

/** A tensor of which only shape and dtype are read. It may be disposed. */
export const tensorOrGone: Kind<Tensor> = {
  expected: "a tensor",
  parse: (value) => (Tensor.isTensor(value) ? value : undefined),
};

/** A plain number, a bigint or a boolean. */
export const aScalar: Kind<Scalar> = {
  expected: "a number, a bigint or a boolean",
  parse: (value) =>
    typeof value === "number" || typeof value === "bigint" || typeof value === "boolean" ? value : undefined,
};

/** A plain number, or a tensor without axes, which is not read. */
export const scalarOrElement: Kind<Tensor | Scalar> = {
  expected: aScalar.expected,
  parse(value, operation, name) {
    return Tensor.isTensor(value) && value.rank === 0
      ? aTensor.parse(value, operation, name)
      : aScalar.parse(value, operation, name);
  },
};

/** A tensor or a plain number. */
export const tensorOrScalar: Kind<Tensor | Scalar> = {
  expected: `a tensor, ${aScalar.expected}`,
  parse: (value, operation, name) => aTensor.parse(value, operation, name) ?? aScalar.parse(value, operation, name),
};

const aList = listOf(aTensor, "a list of tensors");

/** An array of tensors, copied. */
export const tensorList: Kind<readonly Tensor[]> = {
  expected: "an array of tensors",
  parse(value, operation, name) {
    return Array.isArray(value) ? aList.parse(value, operation, name) : undefined;
  },
};

/** One tensor or several. */
export const severalTensors: Kind<readonly Tensor[]> = {
  expected: "a tensor or an array of tensors",
  parse(value, operation, name) {
    const one = aTensor.parse(value, operation, name);
    return one ? [one] : tensorList.parse(value, operation, name);
  },
};
/** Tensors that may also be passed one by one. */
export const tensorsInline: Kind<readonly Tensor[]> = { ...tensorList, starts: Tensor.isTensor };

/** The name of an element type. */
export const aDType: Kind<DType> = {
  expected: `one of ${[...dtypes, ...complexDTypes].join(", ")}`,
  parse: (value) => (isDType(value) ? value : undefined),
  error: [DTypeError, "unknownDType"],
};

/** @throws {DTypeError} for bools */
export function expectNumbers(operation: string, x: Tensor, code = "notNumbers"): void {
  if (x.dtype === "bool")
    throw new DTypeError(operation, code, `expected numbers, got ${x.describe()}; convert with toDType(x, "uint8")`);
}

/** A list of sizes, copied. Operations check for negative and fractional ones. */
export const shapeList: Kind<Shape> = {
  expected: "a list of sizes",
  parse(value) {
    if (!isListed(value)) return undefined;
    if (Array.isArray(value) && plainList(value) !== value) return value; // a shape, frozen
    const list: number[] = [];
    for (let at = 0; at < value.length; at++) {
      const size = value[at];
      if (typeof size !== "number") return undefined;
      list.push(size);
    }
    return list;
  },
  error: [ShapeError, "invalidShape"],
};

/** A list of sizes, or the sizes one by one, as in `reshape(x, 3, 2)`. */
export const aShape: Kind<Shape> = { ...shapeList, starts: (value) => typeof value === "number" };

/** A shape as a list or as separate sizes. */
export type ShapeArguments = [shape: Shape] | number[];

/** Sizes as a list or one by one, followed by options. */
export type SizedArguments<O> = [shape: Shape, options?: O] | number[] | [...sizes: number[], options: O];

/** A typed array whose buffer is not detached. */
export const aTypedArray: Kind<NodeJS.TypedArray> = {
  expected: "a typed array",
  parse(value, operation, name) {
    if (!ArrayBuffer.isView(value) || value instanceof DataView) return undefined;
    if ((value.buffer as ArrayBuffer).detached)
      throw new ArgumentError(
        operation,
        "detached",
        `expected ${name} to be a typed array with an attached buffer, got one whose buffer was transferred`,
      );
    return value as NodeJS.TypedArray;
  },
};
