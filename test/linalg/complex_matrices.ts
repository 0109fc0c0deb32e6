/** Drawn complex matrices, and residuals in units of roundings. */
import * as orchard from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { operandIn } from "../ops/complex/layouts.ts";

const { abs, conj, eye, matmul, mul, sub, toDType } = orchard;

export type ComplexName = "complex64" | "complex128";

export const mH = (x: Tensor): Tensor => conj(orchard.transpose(x, -2, -1));
export const identity = (n: number): Tensor => eye(n, { dtype: "complex128" });
export const wide = (x: Tensor): Tensor => toDType(x, "complex128");

/** A product of drawn factors with the given inner size, times a scale, in a drawn layout. */
export function drawn(
  random: () => number,
  shape: readonly number[],
  rank: number,
  dtype: ComplexName,
  scale: number,
): Tensor {
  const [rows, columns] = shape.slice(-2) as [number, number];
  const batch = shape.slice(0, -2);
  const draw = (sizes: readonly number[]): Tensor => {
    const count = sizes.reduce((product, size) => product * size, 2);
    const numbers = Array.from({ length: count }, () => random() * 2 - 1);
    return operandIn(Math.floor(random() * 12), numbers, sizes, "complex128");
  };
  const whole = rank >= Math.min(rows, columns);
  const matrix = whole ? draw(shape) : matmul(draw([...batch, rows, rank]), draw([...batch, rank, columns]));
  const numbers = [...toDType(mul(matrix, scale) as Tensor, "complex128").dataSync()].map(Number);
  return operandIn(Math.floor(random() * 12), numbers, shape, dtype);
}

const epsilons = { complex64: 2 ** -23, complex128: 2 ** -52 } as const;

/** The largest element of a difference in units of ε · n · the largest element of A. */
export function residual(a: Tensor, b: Tensor, like: Tensor, dtype: ComplexName): number {
  if (a.size === 0) return 0;
  const largest = (x: Tensor): number => (x.size === 0 ? 0 : Number((abs(x) as Tensor).amax().item()));
  const error = largest(sub(wide(a), wide(b)) as Tensor);
  const unit = epsilons[dtype] * Math.max(1, largest(wide(like))) * Math.max(...like.shape.slice(-2));
  return error / unit;
}
