/** The options of kernels on tensors: results, gradients and the fallback without Metal. */

import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aFunction, anObject, either, flag, listOf, text } from "../../core/kinds.ts";
import { type Kind, named } from "../../core/parameters.ts";
import { type DType, dtypes, isDType } from "../../tensor/dtype.ts";
import { checkShape, formatShape, type Shape, sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { NumericArray } from "./buffer.ts";
import type { Size } from "./encode.ts";
import { aSize } from "./kinds.ts";
import type { ScalarValue } from "./scalars.ts";

/** An argument of `apply`: a tensor, or a number or typed array, which the kernel only reads. */
export type KernelValue = Tensor | NumericArray | ScalarValue;

/** The arguments of `apply` by name. */
export type KernelValues = Readonly<Record<string, KernelValue>>;

/** The shapes of the tensor arguments by name. */
export type ShapesOf<Values> = {
  readonly [Name in keyof Values as Extract<Values[Name], Tensor> extends never ? never : Name]: Shape;
};

/** Sizes computed from shapes. A missing axis has the type `undefined`, which is an error at run time. */
export type Sizes = readonly (number | undefined)[];

/**
 *  A result's shape: a constant, the name of an argument with the same shape, or a function of the arguments' shapes.
 */
export type ResultShape<Values> = Shape | (keyof Values & string) | ((shapes: ShapesOf<Values>) => Sizes);

/** The size of a grid: a constant, or a function of the shapes of arguments and results. */
export type GridShape<Values, Results extends string> =
  | Size
  | ((shapes: ShapesOf<Values> & { readonly [Name in Results]: Shape }) => number | Sizes);

/** Tensors by the names of a kernel's results. */
export type KernelTensors<Results extends string> = { readonly [Name in Results]: Tensor };

/**
 * Computes the gradients of a kernel's arguments from those of its results; see `backward` in {@link
 * MetalKernelOptions}. Null: the argument has none.
 */
export type KernelBackward<Values, Results extends string> = (
  gradients: KernelTensors<Results>,
  values: Values,
  results: KernelTensors<Results>,
) => { readonly [Name in keyof Values]?: Tensor | null };

/** The declared options of a kernel. */
export interface Declared {
  readonly shapes: ReadonlyMap<string, Shape | string | Computed>;
  readonly dtypes: ReadonlyMap<string, DType>;
  readonly strided: boolean | readonly string[];
  readonly saves: readonly string[] | undefined;
  readonly fallback: ((values: KernelValues) => unknown) | undefined;
  readonly grid: Size | Computed | undefined;
  readonly threadgroups: Size | Computed | undefined;
  readonly threadgroup: Size | undefined;
  readonly threadgroupMemory: Readonly<Record<string, number>>;
}

/** A function of shapes by name. */
type Computed = (shapes: Readonly<Record<string, Shape>>) => number | Sizes;

const aSizeOrComputed: Kind<Size | Computed> = either(aSize, aFunction<Computed>());
const names = listOf(text, "a list of names");

/** The options of `metalKernel` for tensors. */
export const tensorOptions = {
  shapes: named(anObject<Record<string, Shape | string | Computed>>("an object of shapes by result name"), {}),
  dtypes: named(anObject<Record<string, DType>>("an object of dtypes by result name"), {}),
  strided: named(either(flag, names), false),
  saves: named(names),
  fallback: named(aFunction<(values: KernelValues) => unknown>()),
  grid: named(aSizeOrComputed),
  threadgroups: named(aSizeOrComputed),
  threadgroup: named(aSize),
  threadgroupMemory: named(anObject<Record<string, number>>("an object of byte counts by name"), {}),
} as const;

/** The parsed {@link tensorOptions}. */
export type TensorSettings = Omit<Declared, "shapes" | "dtypes"> & {
  readonly shapes: Readonly<Record<string, Shape | string | Computed>>;
  readonly dtypes: Readonly<Record<string, DType>>;
};

/** Copies the objects in the options once. */
export function declaredOf(operation: string, settings: TensorSettings): Declared {
  const { strided, saves, fallback, grid, threadgroups, threadgroup, threadgroupMemory } = settings;
  const shapes = new Map<string, Shape | string | Computed>();
  for (const [name, shape] of Object.entries(settings.shapes)) shapes.set(name, declaredShape(operation, name, shape));
  const dtypesByName = new Map<string, DType>();
  for (const [name, dtype] of Object.entries(settings.dtypes)) {
    checkIsResult(operation, "dtypes", name, shapes);
    dtypesByName.set(name, declaredDType(operation, name, dtype));
  }
  return {
    shapes,
    dtypes: dtypesByName,
    strided,
    saves,
    fallback,
    grid,
    threadgroups,
    threadgroup,
    threadgroupMemory: { ...threadgroupMemory },
  };
}

function declaredShape(operation: string, name: string, shape: unknown): Shape | string | Computed {
  if (typeof shape === "string" || typeof shape === "function") return shape as string | Computed;
  if (Array.isArray(shape)) return shapeOf(operation, name, shape);
  throw new ShapeError(
    operation,
    "invalidShape",
    `result ${name}: expected a shape, an argument's name, or a function of shapes, got ${describeValue(shape)}`,
  );
}

function declaredDType(operation: string, name: string, dtype: unknown): DType {
  if (isDType(dtype)) return dtype;
  const expected = `expected one of ${dtypes.join(", ")}`;
  throw new DTypeError(operation, "unknownDType", `result ${name}: ${expected}, got ${describeValue(dtype)}`);
}

function checkIsResult(operation: string, option: string, name: string, shapes: ReadonlyMap<string, unknown>): void {
  if (shapes.has(name)) return;
  const known = [...shapes.keys()].join(", ") || "none";
  throw new ArgumentError(operation, "unknownName", `${option}: there is no result ${name}; shapes names: ${known}`);
}

function shapeOf(operation: string, name: string, given: unknown): Shape {
  try {
    return checkShape(operation, [...(given as Shape)]);
  } catch (cause) {
    if (cause instanceof ShapeError)
      throw new ShapeError(operation, cause.code, `result ${name}: ${cause.message.slice(operation.length + 3)}`);
    const message = `result ${name}: expected a list of sizes, got ${describeValue(given)}`;
    throw new ShapeError(operation, "invalidShape", message, { cause });
  }
}

/** Shape and dtype of a result. */
export interface ResultSpec {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
}

/**
 * Returns the shapes and dtypes of a call's results. A tensor under a result's name is its initial value and must have
 * the same shape and dtype.
 *
 * @throws {ArgumentError} @throws {ShapeError} @throws {DTypeError} with the result's name.
 */
export function resultSpecs(
  operation: string,
  { shapes, dtypes }: Declared,
  tensors: ReadonlyMap<string, Tensor>,
): ResultSpec[] {
  const given = Object.fromEntries([...tensors].map(([name, { shape }]) => [name, shape]));
  return [...shapes].map(([name, declared]) => {
    const initial = tensors.get(name);
    const shape = resolvedShape(operation, name, declared, given);
    const dtype = dtypes.get(name) ?? initial?.dtype ?? commonDType(operation, name, tensors);
    if (initial) checkInitial(operation, name, initial, shape, dtype);
    return { name, shape, dtype };
  });
}

function resolvedShape(
  operation: string,
  name: string,
  declared: Shape | string | Computed,
  given: Readonly<Record<string, Shape>>,
): Shape {
  if (typeof declared === "function") return shapeOf(operation, name, declared(given));
  if (typeof declared !== "string") return declared;
  if (Object.hasOwn(given, declared)) return given[declared];
  const known = Object.keys(given).join(", ") || "none";
  const message = `result ${name} has the shape of argument ${declared}, which is not a tensor; tensors: ${known}`;
  throw new ArgumentError(operation, "bindingMissing", message);
}

function commonDType(operation: string, name: string, tensors: ReadonlyMap<string, Tensor>): DType {
  const found = new Set([...tensors.values()].map(({ dtype }) => dtype));
  const [first] = found;
  if (first !== undefined && found.size === 1) return first;
  const came = [...found].join(", ") || "no tensor";
  const message = `dtypes.${name} is required if the arguments have different dtypes, got ${came}`;
  throw new DTypeError(operation, "unknownDType", message);
}

function checkInitial(operation: string, name: string, initial: Tensor, shape: Shape, dtype: DType): void {
  if (sameShape(initial.shape, shape) && initial.dtype === dtype) return;
  const expected = `expected its initial value to be ${dtype}${formatShape(shape)}`;
  throw new ShapeError(operation, "shapesDiffer", `result ${name}: ${expected}, got ${initial.describe()}`);
}

/** Splits the arguments into tensors and other values; undefined ones are ignored. */
export function splitValues(values: Readonly<Record<string, unknown>>) {
  const tensors = new Map<string, Tensor>();
  const others: Record<string, NumericArray | ScalarValue> = {};
  for (const [name, value] of Object.entries(values)) {
    if (Tensor.isTensor(value)) tensors.set(name, value);
    else if (value !== undefined) others[name] = value as NumericArray | ScalarValue;
  }
  return { tensors, others };
}
