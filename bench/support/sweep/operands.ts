/** The tensors of a case's operands. */
import {
  add,
  expand,
  eye,
  matmul,
  mul,
  ones,
  rand,
  randint,
  randn,
  randperm,
  slice,
  type Tensor,
  tidy,
  toDType,
  transpose,
} from "../../../src/index.ts";
import { type Operand, sizeOf } from "./case.ts";

/** Well-conditioned square matrices: a random one plus a multiple of the identity. */
function conditioned(shape: readonly number[], isSymmetric: boolean): Tensor {
  const n = shape.at(-1)!;
  const x = mul(randn([...shape]), 0.3 / Math.sqrt(n));
  const part = isSymmetric ? matmul(x, transpose(x, -1, -2)) : x;
  return add(part, mul(eye(n), 1.5));
}

/**
 * Distinct whole numbers. A vector is in ascending order, so that it can be edges of bins. With more axes, all planes
 * have the same permutation.
 */
function distinct(shape: readonly number[], below: number): Tensor {
  const count = sizeOf(shape);
  if (shape.length === 1) return mul(ones([count]).cumsum(0), Math.max(1, Math.floor(below / count)));
  const places = shape.slice(2);
  return expand(slice(randperm(below), { start: 0, end: sizeOf(places) }).reshape(places), [...shape]).clone();
}

function drawn({ dtype, values }: Operand, shape: readonly number[]): Tensor {
  if (values === "normal") return randn([...shape]);
  if (typeof values === "string") return conditioned(shape, values === "positiveDefinite");
  if ("distinct" in values) return distinct(shape, values.distinct);
  const { low, high } = values;
  if (dtype.includes("float")) return add(mul(rand([...shape]), high - low), low);
  return randint(low, high + 1, [...shape]);
}

/** Draws the elements in memory. {@link view} makes an operand from them. */
export const drawBase = (operand: Operand, shape: readonly number[]): Tensor =>
  tidy(() => toDType(drawn(operand, shape), operand.dtype));

export function view(base: Tensor, { layout, shape }: Operand): Tensor {
  if (layout.kind === "transposed") return transpose(base, ...layout.dims);
  if (layout.kind === "sliced") return slice(base, { dim: layout.dim, step: 2 });
  return layout.kind === "expanded" ? expand(base, [...shape]) : base;
}
