/**
 * Calls without gradients free their intermediate tensors at once: after its results are disposed of, a call holds no
 * memory. Otherwise the next call would get new pages from the system, which takes longer than a small call.
 */
import { expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import {
  cdist,
  einsum,
  eye,
  fft,
  linalg,
  matmul,
  memory,
  nn,
  noGrad,
  randint,
  randn,
  Tensor,
  unravelIndex,
} from "../../src/index.ts";

/** The tensors in a result. */
function tensorsIn(value: unknown): Tensor[] {
  if (value instanceof Tensor) return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(tensorsIn) : [];
}

const positive = (): Tensor => {
  const x = randn([200, 200]);
  return matmul(x, x.transpose(0, 1)).add(eye(200));
};

/** Each makes its operands, of more than 64 KB, and returns the call. */
const cases: Readonly<Record<string, () => () => unknown>> = {
  "matmul of a batch and a matrix": () => {
    const [a, b] = [randn([64, 40, 12]), randn([12, 76])];
    return () => matmul(a, b);
  },
  einsum: () => {
    const [a, b] = [randn([66, 36, 12]), randn([12, 52])];
    return () => einsum("ijk,kl->ijl", a, b);
  },
  cdist: () => {
    const [a, b] = [randn([800, 6]), randn([240, 6])];
    return () => cdist(a, b);
  },
  unravelIndex: () => {
    const indices = randint(0, 24, [30_000]);
    return () => unravelIndex(indices, [2, 3, 4]);
  },
  "fft.fft2": () => {
    const x = randn([2, 230, 81]);
    return () => fft.fft2(x);
  },
  "fft.ifft": () => {
    const x = randn([35_163]);
    return () => fft.ifft(x);
  },
  "fft.irfftn": () => {
    const x = randn([5, 40, 116]);
    return () => fft.irfftn(x);
  },
  "nn.GRU": () => {
    const layer = new nn.GRU(10, 167);
    const x = randn([40, 4, 10]);
    return () => layer.forward(x);
  },
  "nn.LSTMCell": () => {
    const cell = new nn.LSTMCell(349, 269);
    const x = randn([90, 349]);
    return () => cell.forward(x);
  },
  "linalg.det": () => {
    const x = randn([200, 200]);
    return () => linalg.det(x);
  },
  "linalg.slogdet": () => {
    const x = randn([200, 200]);
    return () => linalg.slogdet(x);
  },
  "linalg.logdet": () => {
    const x = positive();
    return () => linalg.logdet(x);
  },
  "linalg.choleskySolve": () => {
    const [l, b] = [linalg.cholesky(positive()), randn([200, 200])];
    return () => linalg.choleskySolve(b, l);
  },
  "linalg.pinv": () => {
    const x = randn([199, 199]);
    return () => linalg.pinv(x);
  },
  "linalg.matrixExp": () => {
    const x = randn([134, 134]).mul(0.1);
    return () => linalg.matrixExp(x);
  },
};

test.each(Object.entries(cases))("%s frees its intermediate tensors", (_, prepare) => {
  withBackend("cpu", () =>
    noGrad(() => {
      const call = prepare();
      const once = (): void => {
        for (const result of tensorsIn(call())) result.dispose();
      };
      once(); // weights and tables that are kept
      const before = memory().host.liveBytes;
      for (let time = 0; time < 3; time++) once();
      // a garbage collection may free more
      expect(memory().host.liveBytes).toBeLessThanOrEqual(before);
    }),
  );
});
