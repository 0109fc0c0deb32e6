/** Embeddings: the states before the logits, pooled. */
import { expect, test } from "bun:test";
import { amax, Generator, matmul, nn, noGrad, setBackend, tensor } from "../../../src/index.ts";

const sizes = { vocabularySize: 31, contextLength: 16, layers: 2, heads: 4, width: 16, tied: true } as const;
const model = new nn.Llama({ ...sizes, generator: new Generator(9), initialization: nn.llamaInitialization(0.4) });
const lists = [[1, 2, 3, 4], [5], [1, 2, 3, 5, 6]];

test.each(["mean", "last"] as const)("%s pooling uses the states from which logits are computed", async (pooling) => {
  setBackend("cpu");
  const rows = await nn.embed(model, lists, { pooling, normalize: false });
  expect(rows.shape).toEqual([3, 16]);
  for (const [at, list] of lists.entries()) {
    const logits = noGrad(() => model.eval().forward(tensor([list], { dtype: "int32" })));
    const pooled = pooling === "last" ? logits.narrow(1, -1, 1).reshape([1, 31]) : logits.mean({ dim: 1 });
    const got = noGrad(() => matmul(rows.narrow(0, at, 1), model.tokenEmbedding.parameters()[0].mT));
    expect(Number(amax(got.sub(pooled).abs()).item())).toBeLessThan(1e-4);
  }
});

test("each vector has length 1, so that equal texts have a product of 1", async () => {
  const rows = await nn.embed(model, [...lists, lists[0]]);
  const products = [...(matmul(rows, rows.mT).dataSync() as Float32Array)];
  for (const at of [0, 5, 10, 15, 3, 12]) expect(products[at]).toBeCloseTo(1, 5);
  for (const at of [1, 2, 6]) expect(products[at]).toBeLessThan(0.999);
  expect(nn.embed(model, [[1], []])).rejects.toThrow(/at least one token/);
});
