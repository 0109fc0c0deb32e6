/** Kernels of complex factorizations: drawn sizes, ranks and layouts, under the checker, against float64. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import * as orchard from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { repeats } from "../support/repeats.ts";
import { drawn, identity, mH, residual, wide } from "./complex_matrices.ts";
import { mulberry32 } from "./random.ts";
import { checked, testVariants } from "./variants.ts";

const { add, linalg, matmul, toDType } = orchard;

const onMetal = <Result>(body: () => Result): Result =>
  checked(() => withStrict(true, () => withBackend("metal", body)));
const onCpu = <Result>(body: () => Result): Result => withBackend("cpu", body);

const close = (a: Tensor, b: Tensor, like: Tensor): void =>
  onCpu(() => expect(residual(a, b, like, "complex64")).toBeLessThan(30));

function checkQr(a: Tensor): void {
  for (const mode of ["reduced", "complete"] as const) {
    const { q, r } = onMetal(() => linalg.qr(a, { mode }));
    onCpu(() => {
      close(matmul(wide(q), wide(r)), a, a);
      const size = q.shape.at(-1)!;
      const unit = orchard.expand(identity(size), [...q.shape.slice(0, -2), size, size]);
      close(matmul(mH(wide(q)), wide(q)), unit, identity(Math.max(1, q.shape.at(-2)!)));
      close(orchard.triu(r), r, a);
      const diagonal = orchard.diagonal(r, { dim1: -2, dim2: -1 });
      expect([...orchard.imag(diagonal).dataSync()].every((each) => Number(each) === 0)).toBe(true);
      expect([...orchard.real(diagonal).dataSync()].every((each) => Number(each) >= 0)).toBe(true);
    });
  }
  const { r } = onMetal(() => linalg.qr(a, { mode: "r" }));
  close(r, onCpu(() => linalg.qr(a)).r, a);
}

function checkLu(a: Tensor): void {
  const found = onMetal(() => linalg.luFactor(a));
  const wanted = onCpu(() => linalg.luFactor(a));
  const { p, l, u } = onMetal(() => linalg.lu(a));
  onCpu(() => {
    close(matmul(wide(p), matmul(wide(l), wide(u))), a, a);
    expect(found.pivots.shape).toEqual(wanted.pivots.shape);
  });
}

/** Solves with A + 8 I and A Aᴴ + I, whose condition numbers are small. */
function checkSolutions(a: Tensor, b: Tensor): void {
  const size = a.shape.at(-1)!;
  const [shifted, definite] = onCpu(() => [
    toDType(add(wide(a), orchard.mul(identity(size), 8)) as Tensor, "complex64"),
    toDType(add(matmul(wide(a), mH(wide(a))), identity(size)) as Tensor, "complex64"),
  ]) as [Tensor, Tensor];
  const scaled = onCpu(() => orchard.mul(shifted, 4) as Tensor);
  const [x, inverse, l, lower, upper, adjoint] = onMetal(() => {
    const { lu, pivots } = linalg.luFactor(shifted);
    return [
      linalg.solve(shifted, b),
      linalg.inv(shifted),
      linalg.cholesky(definite),
      linalg.solveTriangular(shifted, b, { upper: false }),
      linalg.solveTriangular(shifted, b, { upper: true, unitriangular: false }),
      linalg.luSolve(lu, pivots, b, { adjoint: true }),
    ];
  }) as [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor];
  onCpu(() => {
    close(matmul(wide(shifted), wide(x)), b, scaled);
    close(matmul(mH(wide(shifted)), wide(adjoint)), b, scaled);
    close(matmul(wide(shifted), wide(inverse)), orchard.expand(identity(size), shifted.shape), scaled);
    close(matmul(wide(l), mH(wide(l))), definite, definite);
    const [below, above] = [orchard.tril(shifted), orchard.triu(shifted)];
    close(
      matmul(wide(below), wide(lower)),
      b,
      onCpu(() => scaleOf(lower, scaled)),
    );
    close(
      matmul(wide(above), wide(upper)),
      b,
      onCpu(() => scaleOf(upper, scaled)),
    );
  });
}

/** Scales `like` by the largest absolute value of `x`, or by 1 if that is larger. */
function scaleOf(x: Tensor, like: Tensor): Tensor {
  const largest = x.size === 0 ? 1 : Math.max(1, Number((orchard.abs(x) as Tensor).amax().item()));
  return orchard.mul(like, largest) as Tensor;
}

const NAME = "factors and solutions of drawn matrices";
testVariants(import.meta.path, NAME);

describe.skipIf(whyUnavailable("metal") !== undefined)("complex factorizations on metal", () => {
  test(NAME, () => {
    const random = mulberry32(41);
    for (let time = 0; time < repeats({ usual: 10, all: 60 }); time++) {
      const most = time === 0 ? 70 : random() < 0.3 ? 41 : 8;
      const [rows, columns] = [Math.floor(random() * most), Math.floor(random() * most)];
      const batch = random() < 0.4 ? [2, 1] : random() < 0.2 ? [0] : [];
      const rank = random() < 0.3 ? Math.floor(random() * 3) : Math.min(rows, columns);
      const scale = [1, 1, 1e-3, 100][Math.floor(random() * 4)];
      const a = onCpu(() => drawn(random, [...batch, rows, columns], rank, "complex64", scale));
      checkQr(a);
      checkLu(a);
      const square = onCpu(() => drawn(random, [...batch, rows, rows], rows, "complex64", Math.min(scale, 1)));
      checkSolutions(
        square,
        onCpu(() => drawn(random, [...batch, rows, columns], columns, "complex64", 1)),
      );
    }
  });

  test("large and small elements, and failures, are handled", () => {
    for (const scale of [1e37, 1e-37]) {
      const a = onCpu(() => orchard.mul(drawn(mulberry32(3), [5, 4], 4, "complex64", 1), scale) as Tensor);
      const { q, r } = onMetal(() => linalg.qr(a));
      onCpu(() => {
        const product = orchard.mul(matmul(wide(q), wide(r)), 1 / scale) as Tensor;
        close(product, orchard.mul(wide(a), 1 / scale) as Tensor, identity(5));
      });
    }
    const singular = orchard.zeros([2, 3, 3], { dtype: "complex64" });
    expect(onMetal(() => linalg.luFactorEx(singular)).info.toArray()).toEqual([1, 1]);
    const indefinite = orchard.diag(orchard.tensor([1, 2, -1, 4], { dtype: "complex64" }));
    const { factor, info } = onMetal(() => linalg.choleskyEx(indefinite));
    expect(info.item()).toBe(3);
    expect(orchard.real(orchard.diagonal(factor)).toArray()).toEqual([1, Math.fround(Math.SQRT2), 0, 0]);
  });

  test("complex gradients run on metal too", () => {
    const random = mulberry32(7);
    const [a, b] = [0, 1].map(() => onCpu(() => drawn(random, [2, 5, 5], 5, "complex64", 1))) as [Tensor, Tensor];
    const losses: ((x: Tensor) => Tensor)[] = [
      (x) => linalg.solve(x, b),
      (x) => linalg.qr(x).r,
      (x) => linalg.cholesky(add(matmul(x, mH(x)), orchard.eye(5, { dtype: "complex64" })) as Tensor),
      (x) => linalg.luFactor(x).lu,
    ];
    for (const loss of losses) {
      const gradientOf = (): Tensor => {
        const x = orchard.detach(a);
        x.requiresGrad = true;
        return orchard.grad(orchard.sum(orchard.real(orchard.mul(loss(x), loss(x))) as Tensor) as Tensor, [x])[0];
      };
      const [got, wanted] = [onMetal(gradientOf), onCpu(gradientOf)];
      close(
        got,
        wanted,
        onCpu(() => orchard.mul(wanted, 20) as Tensor),
      );
    }
  });
});
