import { record } from "../../autograd/record.ts";
import type { Primitive } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Promote, PromoteScalar, Scalar } from "../../tensor/promotion.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { sumTo } from "../reduction/sum_to.ts";
import { binaryCpu } from "./binary.cpu.ts";
import { binaryMetal } from "./binary.metal.ts";
import { binaryReference } from "./binary.reference.ts";
import type { BinaryName } from "./codes.ts";
import { promoteOperands } from "./operands.ts";
import { neg } from "./unary.ts";

/** An operation on pairs of elements. */
interface BinaryRow {
  /** What two integers give: themselves, or float32 first (true division). */
  readonly integers: "float" | "same";
  /** Whether the gradient needs the operands. */
  readonly saves: boolean;
  /** The gradients of a and b before they are summed to their shapes. A rule may leave out what is not needed. */
  readonly gradient: (gradient: Tensor, a: Tensor, b: Tensor, needs: readonly boolean[]) => readonly (Tensor | null)[];
}

const rows: Readonly<Record<BinaryName, BinaryRow>> = {
  add: { integers: "same", saves: false, gradient: (gradient) => [gradient, gradient] },
  sub: { integers: "same", saves: false, gradient: (gradient) => [gradient, neg(gradient)] },
  mul: {
    integers: "same",
    saves: true,
    gradient: (gradient, a, b, needs) => [needs[0] ? mul(gradient, b) : null, needs[1] ? mul(gradient, a) : null],
  },
  div: {
    integers: "float",
    saves: true,
    gradient: (gradient, a, b, needs) => [
      needs[0] ? div(gradient, b) : null,
      needs[1] ? neg(mul(div(gradient, b), div(a, b))) : null,
    ],
  },
};

const primitive = (name: BinaryName): Primitive => ({
  name,
  implementations: {
    metal: binaryMetal(name),
    cpu: binaryCpu(name),
    reference: binaryReference(name),
  },
});

const primitives: Readonly<Record<BinaryName, Primitive>> = {
  add: primitive("add"),
  sub: primitive("sub"),
  mul: primitive("mul"),
  div: primitive("div"),
};

/** A tensor, or a plain number in its place. */
export type Operand<D extends DType = DType> = Tensor<D> | Scalar;

/** The dtype of a binary operation's result. */
export type ResultOf<A extends Operand, B extends Operand> =
  A extends Tensor<infer D>
    ? B extends Tensor<infer E>
      ? Promote<D, E>
      : PromoteScalar<D>
    : B extends Tensor<infer E>
      ? PromoteScalar<E>
      : DType;

function binary(name: BinaryName, a: Operand, b: Operand): Tensor {
  const { integers, saves, gradient } = rows[name];
  const [left, right] = promoteOperands(name, [a, b], integers) as [Tensor, Tensor];
  const shape = broadcastShapes(name, left.shape, right.shape);
  const output = execute(primitives[name], [left, right], shape, left.dtype, undefined);
  const shapes = [left.shape, right.shape] as const;
  record(name, [left, right], [output], saves ? [left, right] : [], ([incoming], [x, y], needs) =>
    gradient(incoming!, x!, y!, needs).map((result, operand) =>
      result && needs[operand] ? sumTo(result, shapes[operand]!) : null,
    ),
  );
  return output;
}

/**
 * a + b for each pair of elements, broadcast; integers wrap around.
 *
 * @example
 * add(tensor([1, 2]), 0.5); // float32 [1.5, 2.5]
 *
 * @throws {ShapeError} where the shapes can't be broadcast together.
 */
export const add = <A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>> =>
  binary("add", a, b) as Tensor<ResultOf<A, B>>;

/** a − b for each pair of elements, broadcast. @see {@link add} */
export const sub = <A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>> =>
  binary("sub", a, b) as Tensor<ResultOf<A, B>>;

/** a · b for each pair of elements, broadcast. @see {@link add} */
export const mul = <A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>> =>
  binary("mul", a, b) as Tensor<ResultOf<A, B>>;

/** a / b for each pair of elements, broadcast; integers become float32 first. @see {@link add} */
export const div = <A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>> =>
  binary("div", a, b) as Tensor<ResultOf<A, B>>;
