/**
 * Every architecture compared with `transformers`: logits, the following tokens, and batches of texts of two lengths.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { nn, noGrad, type Tensor, withBackend } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { answersOf, decoders, errorOf, folderOf, greedy, numbers } from "./oracle.ts";

/** The tolerance of these models is 1e-4; sums in another order differ by far less. */
const CLOSE = 1e-5;

describe.each(decoders)("decoders of Hugging Face: %s", (name) => {
  const answers = answersOf(name);
  let model: nn.LanguageModel;
  beforeAll(async () => {
    ({ model } = await nn.loadModel(folderOf(name), { dtype: "float32" }));
  });

  test.each(["cpu", "reference"] as const)("logits equal those of transformers on %s", (backend) => {
    const logits = withBackend(backend, () => noGrad(() => model.forward(answers["tokens"])));
    expect(errorOf(logits, answers["logits"])).toBeLessThan(CLOSE);
  });

  test.each([true, false])("64 tokens equal those of transformers, with a cache: %p", (useCache) => {
    const prompt = answers["tokens"].narrow(0, 0, 1);
    expect(greedy(model, prompt, 64, { useCache })).toEqual([numbers(answers["greedy"])]);
  });

  test("a text in parts has the same logits", () => {
    using cache = model.newCache();
    const part = (from: number, count: number) =>
      noGrad(() => model.forward(answers["tokens"].narrow(1, from, count), { cache }));
    const parts = [part(0, 7), part(7, 1), part(8, 4)];
    for (const [at, from, count] of [
      [0, 0, 7],
      [1, 7, 1],
      [2, 8, 4],
    ] as const)
      expect(errorOf(parts[at], answers["logits"].narrow(1, from, count))).toBeLessThan(CLOSE);
  });

  describe("a batch padded on the left has the same results as single texts", () => {
    const padding = [0, 5];
    const tokens = answers["paddedTokens"];

    test("logits of a padded batch equal those of transformers", () => {
      const logits = noGrad(() => model.forward(tokens, { padding }));
      const behind = (x: Tensor) => x.narrow(0, 1, 1).narrow(1, 5, 7);
      expect(errorOf(behind(logits), behind(answers["paddedLogits"]))).toBeLessThan(CLOSE);
      expect(errorOf(logits.narrow(0, 0, 1), answers["paddedLogits"].narrow(0, 0, 1))).toBeLessThan(CLOSE);
    });

    test.each([true, false])(
      "the tokens that follow a padded batch equal those of transformers, with a cache: %p",
      (useCache) => {
        const want = [0, 1].map((row) => numbers(answers["padded"].narrow(0, row, 1)));
        expect(greedy(model, tokens, 16, { padding, useCache })).toEqual(want);
      },
    );
  });
});

const folder = testFolder("decoders");

describe("kinds of scaling of rotary positions match transformers", () => {
  const answers = answersOf("llama");
  const variants: Record<string, object> = JSON.parse(readFileSync(join(folderOf("llama"), "variants.json"), "utf8"));

  test.each(Object.keys(variants))("%s scaling gives the logits of transformers", async (variant) => {
    const path = folder.file(variant);
    const config = JSON.parse(readFileSync(join(folderOf("llama"), "config.json"), "utf8"));
    // the context holds the text if the scaling does not depend on the context
    const isDynamic = variant === "dynamic";
    const own = { ...config, rope_parameters: variants[variant], max_position_embeddings: isDynamic ? 16 : 64 };
    await Bun.write(join(path, "config.json"), JSON.stringify(own));
    await Bun.write(join(path, "model.safetensors"), Bun.file(join(folderOf("llama"), "model.safetensors")));
    const { model } = await nn.loadModel(path, { dtype: "float32" });
    const logits = noGrad(() => model.forward(answers["longTokens"]));
    expect(errorOf(logits, answers[`logits.${variant}`])).toBeLessThan(CLOSE);
    if (!isDynamic) return;
    // earlier keys keep their rotations, in `transformers` too
    const prompt = answers["longTokens"].narrow(1, 0, 12);
    expect(greedy(model, prompt, 16, { useCache: true })).toEqual([numbers(answers["dynamicTokens"])]);
  });

  test("LongRoPE beyond the original context gives the logits of transformers", async () => {
    const { model } = await nn.loadModel(folderOf("phi3"), { dtype: "float32" });
    const own = answersOf("phi3");
    const logits = noGrad(() => model.forward(own["longTokens"])).narrow(1, 97, 3);
    expect(errorOf(logits, own["longLogits"])).toBeLessThan(CLOSE);
  });
});
