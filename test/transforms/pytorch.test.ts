/** jvp, hessian and vmap of drawn functions as torch.func's. */
import { expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import * as orchard from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import fixtures from "../fixtures/functional/pytorch.json";
import { difference } from "./samples.ts";

const { add, arange, cos, exp, eye, linalg, matmul, mul, real, reshape, sin, sum, tensor, transforms } = orchard;

const definite = (a: Tensor): Tensor =>
  add(matmul(a, a.transpose(-2, -1)), eye(a.shape.at(-1)!, { dtype: "float64" })) as Tensor;

const functions: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  softmax: (x) => orchard.softmax(mul(x, 2) as Tensor, -1),
  logsumexp: (x) => orchard.logsumexp(sin(x) as Tensor, -1) as Tensor,
  norm: (x) => orchard.div(x, linalg.vectorNorm(x)) as Tensor,
  cumprod: (x) => orchard.tanh(orchard.cumprod(x, 0)) as Tensor,
  gather: (x) => mul(exp(orchard.indexSelect(x, 0, tensor([2n, 0n, 0n, 3n], { dtype: "int64" }))), x) as Tensor,
  outer: (x) => sum(orchard.outer(x, orchard.sigmoid(x) as Tensor), 0) as Tensor,
  inverse: (a) => linalg.inv(definite(a)),
  solve: (a) => linalg.solve(definite(a), a),
  logdet: (a) => linalg.slogdet(a).logabsdet as Tensor,
  cholesky: (a) => linalg.cholesky(definite(a)),
  eigenvalues: (a) => linalg.eigvalsh(definite(a)) as Tensor,
  singular: (a) => linalg.svdvals(a) as Tensor,
  qr: (a) => orchard.diagonal(linalg.qr(a).r),
  exponential: (a) => linalg.matrixExp(a),
  powers(a) {
    const { eigenvalues, eigenvectors: v } = linalg.eig(a) as { eigenvalues: Tensor; eigenvectors: Tensor };
    return real(matmul(mul(v, exp(eigenvalues).unsqueeze(-2)) as Tensor, linalg.inv(v))) as Tensor;
  },
  spectrum: (x) => orchard.abs(orchard.fft.rfft(x)) as Tensor,
};

const weighted = (x: Tensor): Tensor =>
  sum(mul(cos(add(arange(0, x.size, { dtype: "float64" }), 1)), reshape(x, [x.size]))) as Tensor;

const data = (x: Tensor): number[] => [...(x.dataSync() as Float64Array)];

for (const { name, shape, x, t, batch, value, tangent, mapped, hessian } of fixtures.transforms)
  test(name, () => {
    withBackend("cpu", () => {
      const f = functions[name];
      const make = (numbers: readonly number[], sizes: readonly number[]) =>
        tensor([...numbers], { dtype: "float64", shape: sizes }) as Tensor;
      const point = make(x, shape);
      const found = transforms.jvp((each: Tensor) => f(each), [point], [make(t, shape)]);
      expect(difference(data(found.value), value)).toBeLessThan(1e-11);
      expect(difference(data(found.tangent), tangent)).toBeLessThan(1e-10);
      const all = transforms.vmap((each: Tensor) => f(each))(make(batch, [3, ...shape]));
      expect(difference(data(all), mapped)).toBeLessThan(1e-11);
      const curvature = transforms.hessian((each: Tensor) => weighted(f(each)))(point) as Tensor;
      expect(difference(data(curvature), hessian)).toBeLessThan(1e-8);
    });
  });
