/** Training of encoders: losses against their formulas in float64, cached gradients, and a ranking that improves. */
import { expect, test } from "bun:test";
import { crossEntropy, matmul, nn, optim, type Tensor, tensor, tidy } from "../../../src/index.ts";
import { Random } from "../../ops/samples.ts";
import { testFolder } from "../../support/folder.ts";
import { seed } from "../../support/some.ts";
import { folderOf, load } from "./models.ts";

const folder = testFolder("embedding-training");
const random = new Random(seed);
const between = (low: number, high: number): number => low + random.next() * (high - low);
const rowsOf = (count: number, width: number): number[][] =>
  Array.from({ length: count }, () => Array.from({ length: width }, () => between(-1, 1)));
const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, at) => sum + value * b[at], 0);
const cosine = (a: readonly number[], b: readonly number[]) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
const logSumExp = (values: readonly number[]) => {
  const most = Math.max(...values);
  return most + Math.log(values.reduce((sum, value) => sum + Math.exp(value - most), 0));
};

test("losses are the formulas of sentence-transformers, on drawn sizes", () => {
  for (let round = 0; round < 20; round++) {
    const [count, width, scale] = [random.integer(1, 9), random.integer(1, 17), between(0.5, 30)];
    const [anchors, positives] = [rowsOf(count, width), rowsOf(count, width)];
    const negatives = Array.from({ length: random.integer(0, 2) }, () => rowsOf(random.integer(1, 5), width));
    const candidates = [...positives, ...negatives.flat()];
    const ranking = anchors.map((anchor, at) => {
      const scores = candidates.map((candidate) => scale * cosine(anchor, candidate));
      return logSumExp(scores) - scores[at];
    });
    const options = { scale, negatives: negatives.map((rows) => tensor(rows)) };
    const found = nn.multipleNegativesRankingLoss(tensor(anchors), tensor(positives), options).item();
    expect(Math.abs(Number(found) - ranking.reduce((sum, value) => sum + value, 0) / count)).toBeLessThan(1e-5 * scale);

    const scores = anchors.map(() => random.integer(0, 3) / 3);
    const cosines = anchors.map((anchor, at) => scale * cosine(anchor, positives[at]));
    const powers = cosines.flatMap((low, i) => cosines.flatMap((high, j) => (scores[i] < scores[j] ? low - high : [])));
    const ordered = nn.cosentLoss(tensor(anchors), tensor(positives), tensor(scores), { scale }).item();
    expect(Math.abs(Number(ordered) - logSumExp([0, ...powers]))).toBeLessThan(1e-5 * scale);
  }
});

test("wrong shapes are rejected", () => {
  const [a, b] = [tensor(rowsOf(3, 4)), tensor(rowsOf(2, 4))];
  expect(() => nn.multipleNegativesRankingLoss(a, b)).toThrow("two tensors of the same shape [n, width]");
  expect(() => nn.multipleNegativesRankingLoss(a, a, { negatives: [tensor(rowsOf(3, 5))] })).toThrow("[count, 4]");
  expect(() => nn.cosentLoss(a, a, tensor([1, 2]))).toThrow("expected scores to have the shape [3]");
});

/** Pairs of texts that share no letter: the model has to learn which belong together. */
const twoOf = (letters: string): string[] =>
  [...letters].flatMap((a) => [...letters].filter((b) => a !== b).map((b) => `${a} ${b}`));
const [lefts, rights] = [twoOf("cefim"), twoOf("norst")];
const pairs = Array.from({ length: 8 }, () =>
  [lefts, rights].map((own) => own.splice(random.integer(0, own.length - 1), 1)[0]),
);
const columns = [0, 1].map((side) => pairs.map((own) => own[side]));

const gradientsOf = (model: nn.Encoder): Map<string, number[]> =>
  new Map(
    [...model.namedParameters()].map(([name, { grad }]) => [name, grad ? Array.from(grad.dataSync(), Number) : []]),
  );

test("cached gradients of chunks match one pass", async () => {
  const model = await load(await folderOf(folder.file("cached"), "classify", { isBare: true }));
  const loss = (...vectors: Tensor[]) => nn.multipleNegativesRankingLoss(vectors[0], vectors[1], { scale: 5 });
  const results = [];
  for (const batch of [2 * pairs.length, random.integer(1, 2 * pairs.length - 1)]) {
    for (const parameter of model.parameters()) parameter.grad = null;
    const value = await nn.embeddingBackward(model, columns, loss, { batch });
    results.push({ value, gradients: gradientsOf(model) });
  }
  const [one, many] = results as [(typeof results)[0], (typeof results)[0]];
  expect(Math.abs(one.value - many.value)).toBeLessThan(1e-5);
  let used = 0;
  for (const [name, expected] of one.gradients) {
    const found = many.gradients.get(name)!;
    const largest = Math.max(...expected.map(Math.abs), 0);
    if (largest > 0) used++;
    for (const [at, value] of expected.entries())
      expect(Math.abs(found[at] - value)).toBeLessThan(2e-4 * largest + 1e-6);
  }
  expect(used).toBeGreaterThan(20);
});

const ranked = async (model: nn.Encoder): Promise<number> => {
  const [a, b] = [await nn.embed(model, columns[0]), await nn.embed(model, columns[1])];
  const cosines = Array.from(matmul(a, b.T).dataSync(), Number);
  const best = pairs.map((_, row) => {
    const own = cosines.slice(row * pairs.length, (row + 1) * pairs.length);
    return own.indexOf(Math.max(...own)) === row;
  });
  return best.filter(Boolean).length / pairs.length;
};

test("a ranking improves: pairs that share no word become each other's nearest", async () => {
  const model = await load(await folderOf(folder.file("trained"), "classify", { isBare: true }));
  const before = await ranked(model);
  const optimizer = new optim.AdamW(model.parameters(), { lr: 5e-3 });
  for (let step = 0; step < 120; step++) {
    await nn.embeddingBackward(model, columns, (a, b) => nn.multipleNegativesRankingLoss(a, b), { batch: 16 });
    optimizer.step();
    optimizer.zeroGrad();
  }
  expect([before < 0.6, await ranked(model)]).toEqual([true, 1]);
});

test("a classifier learns labels through forward", async () => {
  const model = await load(await folderOf(folder.file("classifier"), "classify"));
  const texts = [...columns[0], ...columns[1]];
  const rows = texts.map((own) => model.tokenizer!.encode(own));
  const longest = Math.max(...rows.map((row) => row.length));
  const tokens = tensor(
    rows.map((row) => [...row, ...Array<number>(longest - row.length).fill(0)]),
    { dtype: "int32" },
  );
  const labels = tensor(
    texts.map((_, at) => at % 3),
    { dtype: "int32" },
  );
  const lengths = rows.map((row) => row.length);
  const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-2 });
  const losses: number[] = [];
  for (let step = 0; step < 60; step++) {
    tidy(() => {
      const loss = crossEntropy(model.forward(tokens, { lengths }), labels) as Tensor;
      loss.backward();
      losses.push(Number(loss.item()));
    });
    optimizer.step();
    optimizer.zeroGrad();
  }
  expect(losses.at(-1)!).toBeLessThan(losses[0] / 20);
});
