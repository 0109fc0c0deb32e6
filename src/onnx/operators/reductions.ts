/** Operators that reduce axes, and products. */
import * as linalg from "../../linalg/index.ts";
import * as ops from "../../ops/index.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Call, Operator, Operators } from "../call.ts";
import { axesOf, axisOf } from "./axes.ts";

interface Axes {
  readonly dim: readonly number[];
  readonly keepdim: boolean;
}

/** Axes are an attribute, and an input in later versions; without any, all axes or, on request, none are reduced. */
const reduce =
  (compute: (x: Tensor, axes: Axes) => Tensor, before: (x: Tensor) => Tensor = (x) => x): Operator =>
  (call) => {
    const x = call.tensor(0);
    const given = call.numbersOr(1, "axes");
    const keepdim = call.attributes.flag("keepdims", true);
    if ((given ?? []).length === 0 && call.attributes.flag("noop_with_empty_axes")) return before(x);
    const dim = given && given.length > 0 ? axesOf(given, x.rank) : x.shape.map((_, at) => at);
    if (x.rank === 0) return compute(ops.reshape(x, [1]), { dim: [0], keepdim: false }).to(x.dtype);
    return compute(x, { dim, keepdim }).to(x.dtype);
  };

/** The maximum of no elements is the least value of the dtype, and the minimum the greatest, as in ONNX. */
const extremum =
  (compute: typeof ops.amax, sign: -1 | 1) =>
  (x: Tensor, axes: Axes): Tensor => {
    if (axes.dim.every((at) => x.shape[at] > 0)) return compute(x.dtype === "bool" ? x.to("uint8") : x, axes);
    const gone = new Set(axes.dim);
    const shape = x.shape.flatMap((size, at) => (gone.has(at) ? (axes.keepdim ? [1] : []) : [size]));
    return ops.full(shape, limitOf(x.dtype, sign), { dtype: x.dtype });
  };

const limits: Readonly<
  Partial<Record<DType, readonly [low: number | bigint | boolean, high: number | bigint | boolean]>>
> = {
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int8: [-128, 127],
  uint8: [0, 255],
  bool: [false, true],
};

const limitOf = (dtype: DType, sign: -1 | 1): number | bigint | boolean =>
  limits[dtype]?.[sign < 0 ? 0 : 1] ?? sign * Number.POSITIVE_INFINITY;

const squares = (x: Tensor, axes: Axes): Tensor => ops.sum(ops.square(x), axes);

/** Ties go to the first index, or to the last with `select_last_index`. */
const argument =
  (compute: typeof ops.argmax): Operator =>
  (call) => {
    const x = call.tensor(0);
    const dim = axisOf(call.attributes.number("axis", 0), x.rank);
    const keepdim = call.attributes.flag("keepdims", true);
    if (!call.attributes.flag("select_last_index")) return compute(x, { dim, keepdim });
    return ops.sub(x.shape[dim] - 1, compute(ops.flip(x, [dim]), { dim, keepdim }));
  };

/** alpha · A · B + beta · C, where A and B may be transposed. */
function gemm(call: Call): Tensor {
  const turned = (at: number, name: string): Tensor =>
    call.attributes.flag(name) ? ops.transpose(call.tensor(at), 0, 1) : call.tensor(at);
  const product = ops.matmul(turned(0, "transA"), turned(1, "transB"));
  const [alpha, beta] = [call.attributes.number("alpha", 1), call.attributes.number("beta", 1)];
  const scaled = alpha === 1 ? product : ops.mul(product, alpha);
  const c = call.optional(2);
  return c ? ops.add(scaled, beta === 1 ? c : ops.mul(c, beta)).to(product.dtype) : scaled;
}

const logSumExp = (x: Tensor, { dim, keepdim }: Axes): Tensor => ops.logsumexp(x, { dim, keepdim });

export const reductions: Operators = {
  ArgMax: argument(ops.argmax),
  ArgMin: argument(ops.argmin),
  Det: (call) => linalg.det(call.tensor(0)),
  Einsum: (call) =>
    ops.einsum(call.attributes.text("equation").replaceAll(" ", ""), ...call.inputs.map((_, at) => call.tensor(at))),
  Gemm: gemm,
  MatMul: (call) => ops.matmul(call.tensor(0), call.tensor(1)),
  ReduceL1: reduce((x, axes) => ops.sum(ops.abs(x), axes), ops.abs),
  ReduceL2: reduce((x, axes) => ops.sqrt(squares(x, axes)), ops.abs),
  ReduceLogSum: reduce((x, axes) => ops.log(ops.sum(x, axes)), ops.log),
  ReduceLogSumExp: reduce(logSumExp),
  ReduceMax: reduce(extremum(ops.amax, -1)),
  ReduceMean: reduce((x, axes) => ops.mean(x, axes)),
  ReduceMin: reduce(extremum(ops.amin, 1)),
  ReduceProd: reduce((x, { dim, keepdim }) =>
    dim.toReversed().reduce((result: Tensor, axis) => ops.prod(result, { dim: axis, keepdim }), x),
  ),
  ReduceSum: reduce((x, axes) => ops.sum(x, axes)),
  ReduceSumSquare: reduce(squares, ops.square),
};
