/**
 * Defines elementwise operations. From a row that describes an operation, it makes the function that promotes and
 * broadcasts the operands, runs the operation on the backend, and records its gradient.
 *
 * Gradients use operations of lower-level files only, so that no two files import each other.
 */

import { record } from "../../autograd/record.ts";
import type { Primitive } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { executeUpdate } from "../../backend/dispatch.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { coversStorage } from "../../backend/snapshot.ts";
import { operand, parameters, unlisted } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { capture } from "../../observe/capture.ts";
import { isComplex, realDType } from "../../tensor/dtype.ts";
import { aTensor, tensorOrScalar } from "../../tensor/kinds.ts";
import { broadcastShapes, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { executeElementwise } from "../copy/layout.ts";
import { sumTo } from "../view/expand.ts";
import { binaryCpu } from "./binary.cpu.ts";
import { binaryMetal } from "./binary.metal.ts";
import { type BinaryFormula, binaryReference } from "./binary.reference.ts";
import { isOperand, operandDType, promoteOperands } from "./operands.ts";
import type { BinaryName, TernaryName, UnaryName } from "./primitive.ts";
import { ternaryCpu } from "./ternary.cpu.ts";
import { ternaryMetal } from "./ternary.metal.ts";
import { type TernaryFormula, ternaryReference } from "./ternary.reference.ts";
import type {
  BinaryOperation,
  BinaryPredicate,
  FloatOperation,
  Kind,
  Operand,
  RealOperation,
  UnaryOperation,
  UnaryPredicate,
} from "./types.ts";
import { unaryCpu } from "./unary.cpu.ts";
import { unaryMetal } from "./unary.metal.ts";
import { type UnaryFormula, unaryReference } from "./unary.reference.ts";

const unaryOperand = { x: operand(aTensor) };
const binaryOperands = { a: operand(tensorOrScalar), b: operand(tensorOrScalar) };

interface Row<Formula> {
  readonly takes: Kind;
  /** The definition, for the reference backend. */
  readonly reference: Formula;
  /** The operation's name in errors. Default: the name that it is defined with. */
  readonly operation?: string;
  /** False if the operation is internal, or if another public function has its name. Default true. */
  readonly isPublic?: boolean;
}

/** An operation on each element. */
export interface UnaryRow extends Row<UnaryFormula> {
  /** The tensor that the gradient needs from the forward. Default: none. */
  readonly saves?: "input" | "output";
  /**
   * Computes the gradient of the input from the output's gradient g and the saved tensor. Default: none, for operations
   * without floats.
   */
  readonly gradient?: (g: Tensor, saved: Tensor) => Tensor;
  /**
   * The kind of function of complex numbers. `real` has a real result. For `real` and `nonholomorphic`, `gradient`
   * returns ∂L/∂re + i·∂L/∂im. Default: `holomorphic`.
   */
  readonly complex?: "holomorphic" | "nonholomorphic" | "real";
}

/** An operation on pairs of elements. */
export interface BinaryRow extends Row<BinaryFormula> {
  /** Whether the gradient needs the operands. Default: no. */
  readonly saves?: "operands";
  /**
   * Computes the gradients of a and b from the output's gradient g, before summing them to the operands' shapes. It may
   * skip gradients that are not needed. Default: none, for operations without floats.
   */
  readonly gradient?: (g: Tensor, a: Tensor, b: Tensor, needs: readonly boolean[]) => readonly (Tensor | null)[];
}

/** An operation on three elements of one dtype; the first may be a bool condition. */
export interface TernaryRow extends Omit<Row<TernaryFormula>, "takes"> {
  readonly gradient: TernaryGradient;
}

/** Computes the gradients of the operands from the output's gradient g, before summing them to the operands' shapes. */
export type TernaryGradient = (
  g: Tensor,
  operands: readonly [Tensor, Tensor, Tensor],
  needs: readonly boolean[],
) => readonly (Tensor | null)[];

type Predicate<Formula> = Row<Formula> & { readonly result: "bool" };

/** A defined operation. */
export interface Definition {
  readonly name: string;
  readonly operands: 1 | 2 | 3;
  readonly takes: Kind;
  readonly isPredicate: boolean;
  /** Computes the operation. Operations on three operands do not promote. */
  readonly compute: (...operands: Tensor[]) => Tensor;
}

const defined = new Map<string, Definition>();

/** All defined elementwise operations, by name. */
export const definitions: ReadonlyMap<string, Definition> = defined;

/** Functions that make an operation under another name: see {@link renamed}. */
const makers = new WeakMap<object, (operation: string) => unknown>();

/** Returns an operation whose errors have another operation's name. */
export function renamed<Operation extends UnaryOperation | FloatOperation | BinaryOperation>(
  operation: string,
  compute: Operation,
): Operation {
  return makers.get(compute)!(operation) as Operation;
}

/** Defines an operation on each element. */
export function defineUnary(name: UnaryName, row: Predicate<UnaryFormula>): UnaryPredicate;
export function defineUnary(name: UnaryName, row: UnaryRow & { readonly complex: "real" }): RealOperation;
export function defineUnary(name: UnaryName, row: UnaryRow & { readonly takes: "floats" }): FloatOperation;
export function defineUnary(name: UnaryName, row: UnaryRow): UnaryOperation;
export function defineUnary(name: UnaryName, row: UnaryRow | Predicate<UnaryFormula>): unknown {
  const { takes, saves, gradient, complex = "holomorphic" } = row as UnaryRow;
  const isPredicate = "result" in row;
  const isReal = complex === "real";
  const conjugation = complex === "holomorphic" ? "holomorphic" : "none";
  const primitive = definePrimitive({
    name,
    family: "elementwise",
    implementations: {
      metal: unaryMetal(name, isPredicate),
      cpu: unaryCpu(name),
      reference: unaryReference(row.reference),
    },
  });
  const make =
    (operation: string) =>
    (x: Tensor, ...extra: unknown[]) => {
      if (extra.length > 0 || !Tensor.isTensor(x)) unlisted(operation, unaryOperand)([x, ...extra]); // this throws
      x.checkAlive(operation);
      const input = toDType(x, operandDType(operation, x.dtype, takes));
      const dtype = isPredicate ? "bool" : isReal ? realDType(input.dtype) : input.dtype;
      const output = executeElementwise(primitive, [input], input.shape, dtype, operation);
      if (gradient === undefined || !input.requiresGrad) return output;
      const save = saves === undefined ? [] : [saves === "input" ? input : output];
      const rule = ([incoming]: readonly [Tensor], [saved]: readonly Tensor[]) => [
        gradient(incoming, saved ?? incoming),
      ];
      record(name, [input], [output], save, rule, conjugation);
      return output;
    };
  const method = isPredicate ? "bool" : isReal ? "real" : takes === "floats" ? "float" : "same";
  return publish({ name, operands: 1, takes, isPredicate }, make, row, method, isReal ? undefined : primitive);
}

/** Defines an operation on pairs of elements. */
export function defineBinary(name: BinaryName, row: Predicate<BinaryFormula>): BinaryPredicate;
export function defineBinary(name: BinaryName, row: BinaryRow): BinaryOperation;
export function defineBinary(name: BinaryName, row: BinaryRow | Predicate<BinaryFormula>): unknown {
  const { takes, saves, gradient } = row as BinaryRow;
  const isPredicate = "result" in row;
  const primitive = definePrimitive({
    name,
    family: "elementwise",
    implementations: {
      metal: binaryMetal(name, isPredicate),
      cpu: binaryCpu(name),
      reference: binaryReference(row.reference),
    },
  });
  const make =
    (operation: string) =>
    (a: Operand, b: Operand, ...extra: unknown[]) => {
      const isWrong = extra.length > 0 || !isOperand(a) || !isOperand(b);
      if (isWrong) unlisted(operation, binaryOperands)([a, b, ...extra]); // this throws
      const operands = promoteOperands(operation, [a, b], takes);
      const [left, right] = operands;
      const shape = broadcastShapes(operation, left.shape, right.shape);
      const dtype = isPredicate ? "bool" : left.dtype;
      const output = executeElementwise(primitive, operands, shape, dtype, operation);
      if (gradient === undefined || !(left.requiresGrad || right.requiresGrad)) return output;
      const shapes = [left.shape, right.shape] as const;
      record(name, operands, [output], saves ? operands : [], ([incoming], [x, y], needs) =>
        gradient(incoming, x!, y!, needs).map((result, operand) =>
          result && needs[operand] ? sumTo(result, shapes[operand]) : null,
        ),
      );
      return output;
    };
  return publish({ name, operands: 2, takes, isPredicate }, make, row, isPredicate ? "bool" : "promoted", primitive);
}

/** Computes an operation on three elements. A call may pass another gradient rule. */
export type Ternary = (operands: readonly [Tensor, Tensor, Tensor], gradient?: TernaryGradient) => Tensor;

/** Defines an operation on three elements. Callers must promote the operands. */
export function defineTernary(name: TernaryName, row: TernaryRow): Ternary {
  const implementations = {
    metal: ternaryMetal(name),
    cpu: ternaryCpu(name),
    reference: ternaryReference(row.reference),
  };
  const primitive = definePrimitive({ name, family: "elementwise", implementations });
  const compute: Ternary = (operands, gradient = row.gradient) => {
    const shapes = operands.map(({ shape }) => shape);
    const output = executeElementwise(primitive, operands, broadcastShapes(name, ...shapes), operands[1].dtype);
    record(name, operands, [output], operands, ([incoming], [a, b, c], needs) =>
      gradient(incoming, [a, b, c], needs).map((result, operand) =>
        result && needs[operand] ? sumTo(result, shapes[operand]) : null,
      ),
    );
    return output;
  };
  overLast.set(compute, primitive);
  const ofThree = (...operands: Tensor[]) => compute(tupleOf(operands, 3));
  remember({ name, operands: 3, takes: "everything", isPredicate: false, compute: ofThree });
  return compute;
}

/** The properties of an operation that {@link computeInPlace} uses. */
interface InPlace {
  readonly operation: string;
  readonly primitive: Primitive<undefined>;
  readonly operands: 1 | 2;
  readonly takes: Kind;
  readonly isPredicate: boolean;
}
const inPlace = new WeakMap<object, InPlace>();

/**
 * Runs a defined operation with x as its first operand, and writes the result over x. The caller has checked that x can
 * be changed.
 *
 * @returns false, without an effect, if the operation has to compute a new tensor: x is a view or of another dtype, the
 * result has another shape, an operand shares x's memory, or calls are being recorded
 */
export function computeInPlace(compute: object, x: Tensor, rest: readonly unknown[]): boolean {
  const found = inPlace.get(compute);
  if (found === undefined || rest.length !== found.operands - 1 || !isUpdatable(x)) return false;
  const { operation, primitive, takes } = found;
  if (found.isPredicate && x.dtype !== "bool") return false;
  if (found.operands === 1) {
    if (operandDType(operation, x.dtype, takes) !== x.dtype || liftingOf([x], undefined)) return false;
    executeUpdate(primitive, [x], [], undefined, operation);
    return true;
  }
  const [other] = rest;
  if (!isOperand(other) || liftingOf(Tensor.isTensor(other) ? [x, other] : [x], undefined)) return false;
  const [left, right] = promoteOperands(operation, [x, other], takes);
  if (left !== x || !isApart(right, x)) return false;
  executeUpdate(primitive, [x], [right], undefined, operation);
  return true;
}

const overLast = new WeakMap<object, Primitive<undefined>>();

/** Lets {@link computeOverLast} take a function that promotes the operands of an operation on three elements. */
export function computesOverLast(compute: object, ternary: Ternary): void {
  overLast.set(compute, overLast.get(ternary)!);
}

/** Like {@link computeInPlace}, for a function whose last operand is x. All operands are already promoted. */
export function computeOverLast(compute: object, rest: readonly [Tensor, Tensor], x: Tensor): boolean {
  const primitive = overLast.get(compute)!;
  if (!isUpdatable(x) || liftingOf([...rest, x], undefined) || !rest.every((each) => isApart(each, x))) return false;
  executeUpdate(primitive, [x], rest, undefined, undefined, (targets, inputs) => [...inputs, ...targets]);
  return true;
}

const isUpdatable = (x: Tensor): boolean =>
  capture === null && capturing() === undefined && !isComplex(x.dtype) && coversStorage(x);

/** Whether an operand shares no memory with x and can be broadcast to its shape. */
const isApart = (operand: Tensor, x: Tensor): boolean => operand.storage !== x.storage && fits(operand.shape, x.shape);

/** Whether a shape can be broadcast to another one. */
const fits = (shape: Shape, whole: Shape): boolean =>
  shape.length <= whole.length &&
  shape.every((size, axis) => size === 1 || size === whole[whole.length - shape.length + axis]);

type Make = (operation: string) => (...operands: never[]) => Tensor;

/**
 * Makes the function of a definition and registers it.
 *
 * @param primitive `test` if results are bools; otherwise they have the dtype of the operands
 */
function publish(
  definition: Omit<Definition, "compute">,
  make: Make,
  {
    operation = definition.name,
    isPublic = operation === definition.name,
  }: Pick<Row<unknown>, "operation" | "isPublic">,
  method: string,
  primitive?: Primitive<undefined>,
): unknown {
  const { operands, takes, isPredicate } = definition;
  const marked = (name: string) => {
    const made = Object.assign(make(name), { method });
    if (primitive && operands !== 3) inPlace.set(made, { operation: name, primitive, operands, takes, isPredicate });
    return made;
  };
  const compute = marked(operation);
  if (isPublic) parameters(operation, definition.operands === 1 ? unaryOperand : binaryOperands);
  makers.set(compute, marked);
  remember({ ...definition, compute: compute as unknown as Definition["compute"] });
  return compute;
}

function remember(definition: Definition): void {
  if (defined.has(definition.name)) throw new TypeError(`the operation ${definition.name} is defined twice`);
  defined.set(definition.name, definition);
}
