/** Several texts in a row, and recomputed blocks in the backward pass. */
import { describe, expect, test } from "bun:test";
import { crossEntropy, nn, noGrad, type Tensor, tensor } from "../../../src/index.ts";
import { errorOf, folderOf, numbers } from "./loading/oracle.ts";

const row = (tokens: readonly number[]) => tensor([[...tokens]], { dtype: "int32" });
const [first, second] = [
  [5, 9, 2, 7, 11, 3],
  [8, 1, 4, 6],
];
const load = async (name: string) => (await nn.loadModel(folderOf(name), { dtype: "float32" })).model;

describe.each(["gpt2", "llama", "gemma2", "phi3"])("packed texts in the model %s", (name) => {
  test("texts in a row have the logits that they have alone", async () => {
    const model = await load(name);
    const logits = (tokens: readonly number[], inputs?: nn.LanguageModelInputs): Tensor =>
      noGrad(() => model.forward(row(tokens), inputs));
    const both = logits([...first, ...second], { segments: [[first.length, second.length]] });
    expect(errorOf(both.narrow(1, 0, first.length), logits(first))).toBeLessThan(1e-5);
    expect(errorOf(both.narrow(1, first.length, second.length), logits(second))).toBeLessThan(1e-5);
    const seen = logits([...first, ...second]).narrow(1, first.length, second.length);
    expect(errorOf(seen, logits(second))).toBeGreaterThan(1e-3);
  });

  test("recomputed blocks have the same logits and gradients", async () => {
    const model = await load(name);
    const run = (checkpoint: boolean): number[][] => {
      for (const own of model.parameters()) own.grad = null;
      const logits = model.forward(row(first), { checkpoint });
      crossEntropy(logits.narrow(1, 0, 5), row(first.slice(1)), { dim: 2 }).backward();
      return [logits, ...model.parameters().map(({ grad }) => grad!)].map(numbers);
    };
    expect(run(true)).toEqual(run(false));
  });
});

test("invalid options are rejected", async () => {
  const model = await load("llama");
  const forward = (inputs: nn.LanguageModelInputs) => () => model.forward(row(first), inputs);
  expect(forward({ segments: [[3, 2]] })).toThrow(
    "expected segments for 1 rows whose lengths add up to 6, without padding; got sums [5]",
  );
  expect(forward({ segments: [[6], [6]] })).toThrow("got sums [6, 6]");
  expect(forward({ segments: [[6]], padding: [1] })).toThrow("got sums [6] and padding");
  expect(forward({ segments: [[6]], cache: model.newCache() })).toThrow("segments cannot be combined with a cache");
  expect(forward({ checkpoint: true, cache: model.newCache() })).toThrow("checkpoint cannot be combined with a cache");
});
