/** Random activations: randomized leaky ReLU, samples of classes, dropout of channels, on every backend. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import * as library from "../../../src/ops/index.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const { tensor, ones, randn } = library;
const listOf = (x: Tensor): number[] => Array.from(x.dataSync() as Float32Array);
const meanOf = (values: readonly number[]): number => values.reduce((sum, own) => sum + own, 0) / values.length;
/** A leaf that requires a gradient. */
const leafOf = (x: Tensor): Tensor => Object.assign(x.detach(), { requiresGrad: true });

describe.each(tested)("rrelu and alphaDropout on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const generator = () => new Generator(7);

  test("rrelu draws a slope for each element that is not above 0", () => {
    const x = on(() => leafOf(randn([4000], { generator: new Generator(11) })));
    const y = on(() => library.rrelu(x, 0.25, 0.75, { training: true, generator: generator() }));
    const [slopes] = on(() => grad([library.sum(y)], [x]));
    const [before, after, drawn] = [x, y, slopes].map(listOf) as [number[], number[], number[]];
    const below = before.flatMap((own, at) => (own <= 0 ? [at] : []));
    for (const [at, own] of before.entries()) {
      expect(after[at]).toBe(Math.fround(own * drawn[at]));
      if (own > 0) expect(drawn[at]).toBe(1);
      else expect(drawn[at] >= 0.25 && drawn[at] < 0.75).toBe(true);
    }
    expect(Math.abs(meanOf(below.map((at) => drawn[at])) - 0.5)).toBeLessThan(0.03);
    expect(on(() => listOf(library.rrelu(tensor([-2, 3]), 0.25, 0.75)))).toEqual([-1, 3]);
  });

  test("gumbelSoftmax draws classes by their probabilities, and has the gradient of the soft sample", () => {
    const rows = 1500;
    const logits = on(() => leafOf(library.expand(tensor([0, Math.log(2), Math.log(5)]), [rows, 3]).clone()));
    const sample = (hard: boolean) => library.gumbelSoftmax(logits, 0.7, hard, { generator: generator() });
    const [soft, hard] = on(() => [sample(false), sample(true)]) as [Tensor, Tensor];
    for (const own of listOf(on(() => library.sum(soft, 1)))) expect(Math.abs(own - 1)).toBeLessThan(1e-5);
    const shares = listOf(on(() => library.mean(hard, 0)));
    for (const [at, share] of [1 / 8, 2 / 8, 5 / 8].entries()) expect(Math.abs(shares[at] - share)).toBeLessThan(0.05);
    expect(on(() => listOf(library.argmax(hard, { dim: 1 }).to("float32")))).toEqual(
      on(() => listOf(library.argmax(soft, { dim: 1 }).to("float32"))),
    );
    const weights = on(() => randn([rows, 3], { generator: new Generator(3) }));
    const gradientOf = (y: Tensor) => on(() => listOf(grad([y], [logits], { gradOutputs: [weights] })[0]));
    const gradient = gradientOf(soft);
    expect(gradientOf(hard)).toEqual(gradient);
    // tau · ∂/∂logits = y (w − Σ y w)
    const [y, w] = [listOf(soft), listOf(weights)];
    for (const [at, got] of gradient.slice(0, 30).entries()) {
      const row = 3 * Math.floor(at / 3);
      const average = [0, 1, 2].reduce((sum, own) => sum + y[row + own] * w[row + own], 0);
      expect(Math.abs(got - (y[at] * (w[at] - average)) / 0.7)).toBeLessThan(1e-5);
    }
  });

  test("a temperature near 0 gives one class, a high one equal shares", () => {
    const logits = on(() => tensor([[1, 2, 3]]));
    const cold = on(() => listOf(library.gumbelSoftmax(logits, 1e-3, { generator: generator() })));
    expect(cold.toSorted()).toEqual([0, 0, 1]);
    for (const own of on(() => listOf(library.gumbelSoftmax(logits, 1e4))))
      expect(Math.abs(own - 1 / 3)).toBeLessThan(0.01);
  });

  test.each([
    [1, library.dropout1d],
    [2, library.dropout2d],
    [3, library.dropout3d],
  ] as const)("dropout%id drops whole channels", (axes, drop) => {
    const behind = new Array<number>(axes).fill(2);
    const x = on(() => leafOf(ones([30, 20, ...behind])));
    const y = on(() => drop(x, 0.25, { generator: generator() }));
    const channels = on(() => library.reshape(y, [600, -1])).toArray() as number[][];
    const first = channels.map(([own]) => own);
    for (const channel of channels) expect(new Set(channel).size).toBe(1);
    expect([...new Set(first)].toSorted()).toEqual([0, Math.fround(4 / 3)]);
    expect(Math.abs(first.filter((own) => own === 0).length / 600 - 0.25)).toBeLessThan(0.07);
    expect(on(() => listOf(grad([library.sum(y)], [x])[0]))).toEqual(listOf(y));
    expect(drop(x, 0.25, false)).toBe(x);
    expect(on(() => drop(ones([4, ...behind]), 0.5)).shape).toEqual([4, ...behind]);
  });

  test("alphaDropout keeps mean and variance, and so does featureAlphaDropout for whole channels", () => {
    const x = on(() => leafOf(randn([200, 50, 2], { generator: new Generator(11) })));
    const [p, lowest] = [0.3, -1.7580993408473766];
    const scale = 1 / Math.sqrt((1 - p) * (1 + p * lowest ** 2));
    const shift = -scale * lowest * p;
    const wanted = (own: number): number => scale * own + shift;
    for (const drop of [library.alphaDropout, library.featureAlphaDropout]) {
      const y = on(() => drop(x, p, { generator: generator() }));
      const gradient = on(() => listOf(grad([library.sum(y)], [x])[0]));
      const [before, after] = [listOf(x), listOf(y)];
      const kept = after.map((own, at) => Math.abs(own - wanted(before[at])) < 1e-5);
      for (const [at, own] of after.entries()) if (!kept[at]) expect(Math.abs(own - wanted(lowest))).toBeLessThan(1e-5);
      expect(gradient).toEqual(kept.map((own) => (own ? Math.fround(scale) : 0)));
      expect(Math.abs(meanOf(kept.map(Number)) - 0.7)).toBeLessThan(0.02);
      expect(Math.abs(meanOf(after))).toBeLessThan(0.05);
      const isWhole = kept.every((own, at) => own === kept[at - (at % 2)]);
      expect(isWhole).toBe(drop === library.featureAlphaDropout);
      expect(on(() => listOf(drop(x, 1))).every((own) => own === 0)).toBe(true);
      expect(drop(x, p, false)).toBe(x);
    }
  });
});
