/** Factorizations of complex matrices, and eig, of drawn sizes, ranks and layouts: residuals in units of roundings. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import * as orchard from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { type ComplexName, drawn, identity, mH, residual, wide } from "./complex_matrices.ts";
import { mulberry32 } from "./random.ts";

const { abs, add, conj, linalg, matmul, mul, sub, toDType } = orchard;
interface Drawing {
  readonly a: Tensor;
  readonly dtype: ComplexName;
  readonly random: () => number;
}

const close = ({ dtype }: Drawing, a: Tensor, b: Tensor, like: Tensor): void =>
  expect(residual(a, b, like, dtype)).toBeLessThan(30);
const isUnitary = (drawing: Drawing, q: Tensor): void => {
  const n = q.shape.at(-1)!;
  close(
    drawing,
    matmul(mH(wide(q)), wide(q)),
    orchard.expand(identity(n), [...q.shape.slice(0, -2), n, n]),
    identity(n),
  );
};

/** The element of largest absolute value in each column is positive. */
function isOriented(x: Tensor): void {
  if (x.size === 0) return;
  const at = orchard.argmax(abs(x) as Tensor, { dim: -2, keepdim: true });
  const angles = orchard.abs(orchard.angle(orchard.gather(x, -2, at))) as Tensor;
  expect(Number(angles.amax().item())).toBeLessThan(1e-5);
}

const checks: Readonly<Record<string, (drawing: Drawing) => void>> = {
  qr(drawing) {
    const { a } = drawing;
    for (const mode of ["reduced", "complete"] as const) {
      const { q, r } = linalg.qr(a, { mode });
      close(drawing, matmul(wide(q), wide(r)), a, a);
      isUnitary(drawing, q);
      const diagonal = orchard.diagonal(r, { dim1: -2, dim2: -1 });
      expect([...orchard.imag(diagonal).dataSync()].every((each) => Number(each) === 0)).toBe(true);
      expect([...orchard.real(diagonal).dataSync()].every((each) => Number(each) >= 0)).toBe(true);
      close(drawing, orchard.triu(r), r, a);
    }
    close(drawing, linalg.qr(a, { mode: "r" }).r, linalg.qr(a).r, a);
  },
  svd(drawing) {
    const { a, dtype } = drawing;
    for (const fullMatrices of [true, false]) {
      const { u, s, vh } = linalg.svd(a, { fullMatrices });
      const size = s.shape.at(-1)!;
      const left = mul(wide(u.narrow(-1, 0, size)), s.unsqueeze(-2)) as Tensor;
      close(drawing, matmul(left, wide(vh.narrow(-2, 0, size))), a, a);
      isUnitary(drawing, u);
      isUnitary(drawing, mH(vh));
      isOriented(u);
      const values = linalg.svdvals(a) as Tensor;
      expect(residual(toDType(values, dtype), toDType(s as Tensor, dtype), a, dtype)).toBeLessThan(30);
    }
  },
  lu(drawing) {
    const { p, l, u } = linalg.lu(drawing.a);
    close(drawing, matmul(wide(p), matmul(wide(l), wide(u))), drawing.a, drawing.a);
    expect(l.size === 0 || Number((abs(l) as Tensor).amax().item()) < 1.5).toBe(true); // √2, for pivots by |re| + |im|
  },
  lstsq(drawing) {
    const { a, random, dtype } = drawing;
    const b = drawn(random, [...a.shape.slice(0, -1), 2], 2, dtype, 1);
    const { solution } = linalg.lstsq(a, b);
    // The residual is orthogonal to the columns of A.
    const rest = sub(matmul(wide(a), wide(solution)), wide(b)) as Tensor;
    const product = matmul(mH(wide(a)), rest);
    const scale = Math.max(1, solution.size === 0 ? 0 : Number((abs(wide(solution)) as Tensor).amax().item()));
    expect(residual(product, mul(product, 0) as Tensor, mul(a, scale) as Tensor, dtype)).toBeLessThan(2000);
  },
  square(drawing) {
    const { a: given, dtype } = drawing;
    const [rows, columns] = given.shape.slice(-2) as [number, number];
    const a = given.narrow(-2, 0, Math.min(rows, columns)).narrow(-1, 0, Math.min(rows, columns));
    const hermitian = add(a, mH(a)) as Tensor;
    for (const UPLO of ["L", "U"] as const) {
      const { eigenvalues, eigenvectors: v } = linalg.eigh(hermitian, { UPLO });
      const scaled = mul(wide(v), (eigenvalues as Tensor).unsqueeze(-2)) as Tensor;
      close(drawing, matmul(wide(hermitian), wide(v)), scaled, hermitian);
      isUnitary(drawing, v);
      isOriented(v);
    }
    const definite = toDType(add(matmul(wide(a), mH(wide(a))), identity(a.shape.at(-1)!)) as Tensor, dtype);
    const l = linalg.cholesky(definite);
    close(drawing, matmul(wide(l), mH(wide(l))), definite, definite);
    const shifted = toDType(add(wide(a), mul(identity(a.shape.at(-1)!), 8)) as Tensor, dtype);
    const inverse = linalg.inv(shifted);
    const { lu, pivots } = linalg.luFactor(shifted);
    close(drawing, linalg.luSolve(lu, pivots, shifted), matmul(wide(inverse), wide(shifted)), shifted);
  },
  eig(drawing) {
    const { a: given, dtype } = drawing;
    const size = Math.min(...given.shape.slice(-2));
    const a = given.narrow(-2, 0, size).narrow(-1, 0, size);
    for (const matrix of [a, orchard.real(a) as Tensor]) {
      const { eigenvalues, eigenvectors: v } = linalg.eig(matrix) as { eigenvalues: Tensor; eigenvectors: Tensor };
      expect(eigenvalues.dtype).toBe(dtype);
      const scaled = mul(wide(v), wide(eigenvalues).unsqueeze(-2)) as Tensor;
      close(drawing, matmul(wide(matrix), wide(v)), scaled, matrix);
      close(drawing, linalg.eigvals(matrix) as Tensor, eigenvalues, matrix);
      isOriented(v);
      if (v.size > 0) {
        const norms = linalg.vectorNorm(v, { dim: -2 }) as Tensor;
        expect(Number((abs(sub(norms, 1)) as Tensor).amax().item())).toBeLessThan(1e-5);
      }
    }
  },
};

describe("factorizations of drawn complex matrices are accurate", () => {
  for (const dtype of ["complex64", "complex128"] as const)
    for (const [name, check] of Object.entries(checks))
      test(`${name} of ${dtype} is accurate`, () => {
        withBackend("cpu", () => {
          const random = mulberry32(name.length * 7 + (dtype === "complex64" ? 1 : 2));
          const size = (): number => Math.floor(random() * (random() < 0.3 ? 41 : 8));
          for (let time = 0; time < 12; time++) {
            const [rows, columns] = [size(), size()];
            const shape = random() < 0.3 ? [2, rows, columns] : [rows, columns];
            const rank = random() < 0.3 ? Math.floor(random() * 3) : Math.min(rows, columns);
            const scale = [1, 1, 1e-3, 100][Math.floor(random() * 4)];
            check({ a: drawn(random, shape, rank, dtype, scale), dtype, random });
          }
        });
      });
});

describe("eig of complex matrices", () => {
  const sorted = (x: Tensor): string[] =>
    (x.toArray() as { re: number; im: number }[])
      .map(({ re, im }) => `${re.toFixed(6)} ${im.toFixed(6)}`.replaceAll("-0.000000", "0.000000"))
      .sort();
  const matrix = (rows: readonly (readonly number[])[]): Tensor =>
    orchard.tensor(rows as number[][], { dtype: "float64" });

  test("eig finds known eigenvalues", () => {
    const cyclic = [0, 1, 2, 3, 4].map((i) => [0, 1, 2, 3, 4].map((j) => (j === (i + 1) % 5 ? 1 : 0)));
    const roots = cyclic.map((_, k) => ({ re: Math.cos((2 * Math.PI * k) / 5), im: Math.sin((2 * Math.PI * k) / 5) }));
    expect(sorted(linalg.eigvals(matrix(cyclic)) as Tensor)).toEqual(sorted(orchard.tensor(roots) as Tensor));
    expect(
      sorted(
        linalg.eigvals(
          matrix([
            [3, 1e5, 0],
            [0, 3, 1e-5],
            [0, 0, 7],
          ]),
        ) as Tensor,
      ),
    ).toEqual(["3.000000 0.000000", "3.000000 0.000000", "7.000000 0.000000"]);
    expect(
      sorted(
        linalg.eigvals(
          matrix([
            [0, 0],
            [0, 0],
          ]),
        ) as Tensor,
      ),
    ).toEqual(["0.000000 0.000000", "0.000000 0.000000"]);
    const graded = matrix([
      [1e30, 1],
      [0, 1e-30],
    ]);
    expect(orchard.real(linalg.eigvals(graded)).toArray()).toEqual([1e30, 1e-30]);
  });

  test("conjugate eigenvalues of a real matrix are adjacent, with conjugate vectors", () => {
    const random = mulberry32(5);
    const a = matrix(Array.from({ length: 9 }, () => Array.from({ length: 9 }, () => random() - 0.5)));
    const { eigenvalues, eigenvectors } = linalg.eig(a);
    const values = eigenvalues.toArray() as { re: number; im: number }[];
    const columns = orchard.transpose(eigenvectors, 0, 1).toArray() as { re: number; im: number }[][];
    const pairs = values.flatMap(({ im }, at) => (im > 0 ? [at] : []));
    expect(pairs.length).toBeGreaterThan(0);
    for (const at of pairs) {
      expect(values[at + 1]).toEqual({ re: values[at].re, im: -values[at].im });
      expect(columns[at + 1]).toEqual(columns[at].map(({ re, im }) => ({ re, im: -im })));
    }
  });

  test("eig rejects matrices that are not finite, and losses that depend on phases", () => {
    expect(() =>
      linalg.eig(
        matrix([
          [1, Number.NaN],
          [0, 1],
        ]),
      ),
    ).toThrow("infinite or NaN");
    expect(() => linalg.eigvals(orchard.ones([2, 2, 3]))).toThrow(orchard.ShapeError);
    expect(() => linalg.eigvals(orchard.ones([2, 2], { dtype: "int32" }))).toThrow(orchard.DTypeError);
    const z = orchard.randn([3, 3], { dtype: "complex128", requiresGrad: true });
    const weights = orchard.randn([3, 3], { dtype: "complex128" });
    for (const vectors of [
      linalg.eig(z).eigenvectors,
      linalg.svd(z).u,
      linalg.eigh(add(z, mH(z)) as Tensor).eigenvectors,
    ]) {
      const loss = orchard.real(mul(vectors, weights).sum()) as Tensor;
      expect(() => loss.backward()).toThrow("does not depend on the phases");
    }
  });
});

test("metal runs complex eigenvalues and singular values on cpu, and records why", () => {
  const z = orchard.randn([3, 3], { dtype: "complex64" });
  const { u, s, vh } = withBackend("metal", () => {
    orchard.resetCodepaths();
    const found = linalg.svd(z);
    expect(JSON.stringify(orchard.codepaths())).toContain("only cpu computes this of complex matrices");
    return found;
  });
  close({ a: z, dtype: "complex64", random: mulberry32(1) }, matmul(mul(u, s.unsqueeze(-2)) as Tensor, vh), z, z);
});

test("the gradient of cholesky is Hermitian", () => {
  const z = orchard.randn([4, 4], { dtype: "complex128" });
  const a = orchard.detach(add(matmul(z, mH(z)), identity(4)) as Tensor);
  a.requiresGrad = true;
  orchard.real(mul(linalg.cholesky(a), z).sum()).backward();
  expect(Number((abs(sub(a.grad!, mH(a.grad!))) as Tensor).amax().item())).toBeLessThan(1e-14);
});

test("gradcheck differentiates both parts of complex inputs, and finds a wrong gradient", () => {
  const z = orchard.randn([3, 3], { dtype: "complex128", requiresGrad: true });
  expect(orchard.gradcheck((x) => linalg.inv(x), [z])).toBe(true);
  expect(orchard.gradcheck((x) => [abs(x) as Tensor, linalg.slogdet(x).sign], [z])).toBe(true);
  const wrong = (x: Tensor): Tensor => mul(x, conj(orchard.detach(x))) as Tensor;
  expect(() => orchard.gradcheck(wrong, [z])).toThrow(/(real|imaginary) part of element \d/);
});
