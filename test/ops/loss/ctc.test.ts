/** ctcLoss compared with sums over all paths of classes, in float64: losses, gradients, and gradients of gradients. */
import { describe, expect, test } from "bun:test";
import {
  ctcLoss,
  type DType,
  grad,
  mul,
  sum,
  type Tensor,
  tensor,
  withBackend,
  withStrict,
} from "../../../src/index.ts";
import { tested } from "../run.ts";

const list = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number>, Number);

/** Calls `use` with every path of `times` classes, and the logarithm of its probability. */
function forEachPath(logs: readonly number[][], use: (path: readonly number[], log: number) => void): void {
  const walk = (path: number[], log: number): void => {
    if (path.length === logs.length) use(path, log);
    else for (const [own, next] of logs[path.length].entries()) walk([...path, own], log + next);
  };
  walk([], 0);
}

/** A path without repetitions, then without blanks. */
const labelsOf = (path: readonly number[]): string =>
  path.filter((own, at) => own !== path[at - 1] && own !== 0).join();

/** The loss, and the probability of each class at each time among paths of these labels. */
function oracle(logs: readonly number[][], labels: readonly number[]): { loss: number; shares: number[][] } {
  let total = 0;
  const shares = logs.map((row) => row.map(() => 0));
  forEachPath(logs, (path, log) => {
    if (labelsOf(path) !== labels.join()) return;
    total += Math.exp(log);
    for (const [time, own] of path.entries()) shares[time][own] += Math.exp(log);
  });
  return { loss: -Math.log(total), shares: shares.map((row) => row.map((own) => (total === 0 ? 0 : own / total))) };
}

const [times, classes] = [5, 3];
/** Log probabilities [times, classes] of an element of the batch. */
const logs = (element: number): number[][] =>
  Array.from({ length: times }, (_, time) =>
    Array.from({ length: classes }, (_own, own) =>
      Math.fround(-0.3 - Math.abs(Math.sin(time * 3 + own * 5 + element))),
    ),
  );
interface Element {
  readonly labels: readonly number[];
  readonly times: number;
}
const elements: readonly Element[] = [
  { labels: [1, 2], times },
  { labels: [1, 1, 2], times: 4 },
  { labels: [], times: 3 },
  { labels: [2], times: 1 },
  { labels: [2, 2], times },
  { labels: [1, 2, 1, 2, 1], times },
];
const batch = elements.length;
const flat = Array.from({ length: times }, (_, time) => elements.flatMap((_own, at) => logs(at)[time])).flat();
const targets = elements.flatMap(({ labels }) => [...labels, 0, 0, 0, 0, 0].slice(0, 5).map(BigInt));
const given = () =>
  [
    tensor(targets, { shape: [batch, 5] }),
    elements.map((own) => own.times),
    elements.map(({ labels }) => labels.length),
  ] as const;
const expected = elements.map(({ labels, times: own }, at) => oracle(logs(at).slice(0, own), labels));

describe.each(tested)("ctcLoss on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const dtypes: readonly DType[] = backend === "metal" ? ["float32"] : ["float32", "float64"];
  const leaf = (dtype: DType): Tensor => tensor(flat, { shape: [times, batch, classes], dtype, requiresGrad: true });
  const close = (found: readonly number[], wanted: readonly number[], dtype: DType): void => {
    const most = dtype === "float64" ? 1e-12 : 4e-6;
    for (const [at, own] of found.entries())
      expect(Math.abs(own - wanted[at]), `${at}: ${own}, ${wanted[at]}`).toBeLessThanOrEqual(most);
  };

  test.each(dtypes.map((dtype) => [dtype] as const))("losses and gradients equal the formula: %s", (dtype) =>
    on(() => {
      const x = leaf(dtype);
      const losses = ctcLoss(x, ...given(), { reduction: "none" });
      close(
        list(losses),
        expected.map(({ loss }) => loss),
        dtype,
      );
      const factors = [1, -2, 3, 0.5, 2, -1];
      const wanted = Array.from({ length: times }, (_, time) =>
        expected.flatMap(({ shares }, at) =>
          Array.from({ length: classes }, (_own, own) => -factors[at] * (shares[time]?.[own] ?? 0)),
        ),
      ).flat();
      for (const createGraph of [false, true]) {
        const gradOutputs = [tensor(factors, { dtype })];
        const [gradient] = grad([losses], [x], { gradOutputs, createGraph, retainGraph: true });
        close(list(gradient), wanted, dtype);
      }
    }),
  );

  test.each(dtypes.map((dtype) => [dtype] as const))("the mean is of losses per label: %s", (dtype) =>
    on(() => {
      const x = leaf(dtype);
      const mean = ctcLoss(x, ...given());
      const divisors = elements.map(({ labels }) => batch * Math.max(labels.length, 1));
      close(list(mean), [expected.reduce((total, { loss }, at) => total + loss / divisors[at], 0)], dtype);
      const wanted = Array.from({ length: times }, (_, time) =>
        expected.flatMap(({ shares }, at) =>
          Array.from({ length: classes }, (_own, own) => -(shares[time]?.[own] ?? 0) / divisors[at]),
        ),
      ).flat();
      for (const createGraph of [false, true]) {
        const [gradient] = grad([mean], [x], { createGraph, retainGraph: true });
        close(list(gradient), wanted, dtype);
      }
    }),
  );

  test("ctcLoss has gradients of gradients", () =>
    on(() => {
      const dtype = dtypes.at(-1)!;
      const x = leaf(dtype);
      const [first] = grad([ctcLoss(x, ...given(), { reduction: "sum" })], [x], { createGraph: true });
      const weights = flat.map((_, at) => Math.cos(at));
      const [second] = grad([sum(mul(first, tensor(weights, { shape: x.shape, dtype }))) as Tensor], [x]);
      const found = list(second);
      const step = 1e-4;
      for (const [at, { labels, times: length }] of elements.entries())
        for (let time = 0; time < length; time += 2) {
          const place = (time * batch + at) * classes + 1;
          const moved = (by: number) => {
            const own = logs(at).slice(0, length);
            own[time][1] += by;
            return oracle(own, labels).shares.flatMap((row, row_) =>
              row.map((share, own_) => -share * weights[(row_ * batch + at) * classes + own_]),
            );
          };
          const [up, down] = [moved(step), moved(-step)];
          const wanted = up.reduce((total, own, k) => total + (own - down[k]) / (2 * step), 0);
          expect(Math.abs(found[place] - wanted)).toBeLessThanOrEqual(dtype === "float64" ? 1e-7 : 2e-5);
        }
    }));

  test("losses of impossible labels, of logarithms of 0, and of NaN are right", () =>
    on(() => {
      const x = tensor([-1, -2, -0.5, -1, -Infinity, -1, Number.NaN, -1].map(Math.fround), {
        shape: [2, 2, 2],
        requiresGrad: true,
      });
      const of = (labels: bigint[], counts: number[], zeroInfinity: boolean) =>
        ctcLoss(x, tensor(labels, { shape: [2, 2] }), [2, 1], counts, { reduction: "none", zeroInfinity });
      expect(list(of([1n, 1n, 1n, 0n], [2, 1], false))).toEqual([Infinity, 1]);
      const zeroed = of([1n, 1n, 1n, 0n], [2, 1], true);
      expect(list(zeroed)).toEqual([0, 1]);
      const [gradient] = grad([sum(zeroed) as Tensor], [x]);
      expect(list(gradient).map((own) => own + 0)).toEqual([0, 0, 0, -1, 0, 0, 0, 0]);
      for (const zeroInfinity of [false, true]) {
        const mean = ctcLoss(x, tensor([1n, 1n, 1n, 0n], { shape: [2, 2] }), [2, 1], [2, 1], { zeroInfinity });
        expect(mean.item()).toBe(zeroInfinity ? 0.5 : Infinity);
        const [ofMean] = grad([mean], [x]);
        expect(list(ofMean).map((own) => own + 0)).toEqual([0, 0, 0, -0.5, 0, 0, 0, 0]);
      }
      // the blank has no probability at the second time: only paths that end with the label count
      const [own] = list(of([1n, 0n, 1n, 0n], [1, 1], false));
      expect(Math.abs(own + Math.log(Math.exp(-2) + Math.exp(-3)))).toBeLessThan(1e-6);
      const bad = ctcLoss(x, tensor([1n, 0n, 1n, 0n], { shape: [2, 2] }), [2, 2], [1, 1], { reduction: "none" });
      expect(list(bad)[1]).toBeNaN();
      expect(
        list(ctcLoss(x, tensor([], { shape: [2, 0], dtype: "int64" }), [0, 1], [0, 0], { reduction: "none" })),
      ).toEqual([-0, 0.5]);
      expect(list(ctcLoss(x, tensor([1n, 1n], { shape: [2, 1] }), [0, 1], [1, 1], { reduction: "none" }))[0]).toBe(
        Infinity,
      );
    }));

  test("a target of 20 labels matches the formula", () =>
    on(() => {
      const [long, many] = [backend === "cpu" ? 300 : 40, 40]; // on other backends a time step takes several calls
      const x = Float32Array.from({ length: long * many }, (_, at) => -1 - 6 * Math.abs(Math.sin(at * 1.7)));
      const labels = Array.from({ length: 20 }, (_, at) => 1 + ((at * 7) % 39));
      const states = Array.from({ length: 41 }, (_, at) => (at % 2 === 1 ? labels[(at - 1) / 2] : 0));
      const logSum = (...own: number[]) => {
        const top = Math.max(...own);
        return top === -Infinity ? top : top + Math.log(own.reduce((total, each) => total + Math.exp(each - top), 0));
      };
      let alpha = states.map((_, at) => (at === 0 ? 0 : -Infinity));
      for (let time = 0; time < long; time++)
        alpha = states.map((own, at) => {
          const skips = at % 2 === 1 && at > 2 && own !== states[at - 2];
          const before = [alpha[at], alpha[at - 1] ?? -Infinity, skips ? alpha[at - 2] : -Infinity];
          return logSum(...before) + x[time * many + own];
        });
      const wanted = -logSum(alpha[40], alpha[39]);
      const leafOf = tensor(x, { shape: [long, 1, many], requiresGrad: true });
      const loss = ctcLoss(leafOf, tensor(labels.map(BigInt), { shape: [1, 20] }), [long], [20], { reduction: "sum" });
      expect(Math.abs((loss.item() as number) - wanted)).toBeLessThanOrEqual(wanted * 2 ** -22);
      const [gradient] = grad([loss], [leafOf]);
      const own = list(gradient);
      // 2 √n roundings (Higham and Mary, 2019), with n = 2 · long steps; logarithms of the relevant terms are up to 16
      const bound = 2 * Math.sqrt(2 * long) * 2 ** -24 * 16;
      for (let time = 0; time < long; time++) {
        const shares = own.slice(time * many, (time + 1) * many).reduce((total, share) => total + share, 0);
        expect(Math.abs(shares + 1)).toBeLessThanOrEqual(bound);
      }
    }));
});
