import { record } from "../../autograd/record.ts";
import type { Primitive } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "./binary.ts";
import type { UnaryName } from "./codes.ts";
import { unaryCpu } from "./unary.cpu.ts";
import { unaryMetal } from "./unary.metal.ts";
import { unaryReference } from "./unary.reference.ts";

/** An operation on each element. */
interface UnaryRow {
  /** What integers and bools become first: `"float"` float32, `"same"` stay as they are. */
  readonly integers: "float" | "same";
  /** The gradient of the input, from the output's gradient, the input x and the output y. */
  readonly gradient: (gradient: Tensor, x: Tensor, y: Tensor) => Tensor;
  /** What the gradient needs of the forward. */
  readonly saves: "nothing" | "input" | "output";
}

const rows: Readonly<Record<UnaryName, UnaryRow>> = {
  neg: { integers: "same", saves: "nothing", gradient: (gradient) => neg(gradient) },
  exp: { integers: "float", saves: "output", gradient: (gradient, _, y) => mul(gradient, y) },
};

const primitive = (name: UnaryName): Primitive => ({
  name,
  implementations: {
    metal: unaryMetal(name),
    cpu: unaryCpu(name),
    reference: unaryReference(name),
  },
});

const primitives: Readonly<Record<UnaryName, Primitive>> = {
  neg: primitive("neg"),
  exp: primitive("exp"),
};

function unary(name: UnaryName, x: Tensor): Tensor {
  const { integers, saves, gradient } = rows[name];
  const input = integers === "float" && !isFloat(x.dtype) ? toDType(x, "float32") : x;
  const output = execute(primitives[name], [input], input.shape, input.dtype, undefined);
  const save = { nothing: [], input: [input], output: [output] }[saves];
  record(name, [input], [output], save, ([incoming], [saved]) => [gradient(incoming!, saved!, saved!)]);
  return output;
}

/** What `exp` and its like make of a dtype: floats stay, integers and bools become float32. */
export type FloatOf<D extends DType> = D extends "float64" | "float32" | "float16" | "bfloat16" ? D : "float32";

/** −x for each element; integers wrap around. */
export const neg = <D extends DType>(x: Tensor<D>): Tensor<D> => unary("neg", x) as Tensor<D>;

/** eˣ for each element; integers become float32. */
export const exp = <D extends DType>(x: Tensor<D>): Tensor<FloatOf<D>> => unary("exp", x) as Tensor<FloatOf<D>>;
