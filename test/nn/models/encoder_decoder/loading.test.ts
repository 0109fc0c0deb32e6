/** Files of encoder-decoder models: encoders alone, other dtypes, quantized weights, and rejected files. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { flip, Generator, io, nn, noGrad, type Tensor, tensor } from "../../../../src/index.ts";
import { Random } from "../../../ops/samples.ts";
import { testFolder } from "../../../support/folder.ts";
import { seed } from "../../../support/some.ts";
import { errorOf } from "../encoder/oracle.ts";
import { answers, lengths, load, type Model, models, writeModel } from "./oracle.ts";

const folder = testFolder("loading");
const random = new Random(seed);
const [tokens, targets] = [answers["tokens"], answers["targets"]] as [Tensor, Tensor];
const indexOf = (type: string): number => models.findIndex(({ config }) => config["model_type"] === type);
const t5 = models[indexOf("t5")];
const isT5 = ([, type]: readonly [index: number, type: string]): boolean => type.endsWith("t5");

test.each(["t5", "umt5"])(
  "the encoder of %s loads from its folder, and from the folder of the whole model",
  async (type) => {
    const index = indexOf(type);
    const described = models[index];
    const isOfEncoder = ([name]: readonly [string, unknown]) => /^(shared|encoder)\./.test(name);
    const weights = Object.fromEntries(Object.entries(described.weights).filter(isOfEncoder));
    for (const [name, own] of [["alone", { ...described, weights }] as const, ["whole", described] as const]) {
      const path = await writeModel(folder.file(type + name), own, { architectures: ["T5EncoderModel"] });
      const { model } = await nn.loadModel<nn.Encoder>(path);
      const states = noGrad(() => model.forward(tokens, { lengths }));
      const kept = states.indexSelect(1, tensor([0, 4], { dtype: "int32" }));
      expect(errorOf(kept, answers[`${index}.states`])).toBeLessThan(1e-5);
    }
  },
);

test.each(models.map(({ config }, index) => [index, String(config["model_type"])] as const).filter(isT5))(
  "model %d, a %s, uses a head that differs from the embeddings",
  async (index, type) => {
    // The head has the rows of the shared table in reverse order, so the logits of transformers are reversed.
    for (const isTied of [true, false]) {
      if (type === "t5" && isTied !== models[index].config["tie_word_embeddings"]) continue; // scales hidden states
      const path = await writeModel(folder.file(`${type}${index}${isTied}`), models[index], {
        tie_word_embeddings: isTied,
      });
      const file = join(path, "model.safetensors");
      const weights = io.loadSafetensors(file);
      await io.saveSafetensors(file, { ...weights, "lm_head.weight": flip(weights["shared.weight"], [0]) });
      const model = await load(path);
      expect(model.head).not.toBeNull();
      const logits = noGrad(() => model.forward(tokens, targets, { lengths }));
      expect(errorOf(flip(logits, [2]), answers[`${index}.logits`])).toBeLessThan(1e-5);
    }
  },
);

test("quantized weights and other dtypes give nearly the same logits", async () => {
  const resize = (shape: readonly number[]) =>
    shape.map((length, axis) => (shape.length === 2 && axis === 1 && length !== 31 ? 32 : length));
  const config = { ...t5.config, d_model: 32, d_kv: 8, num_heads: 4, d_ff: 32, num_layers: 1, num_decoder_layers: 1 };
  const ofOneBlock = Object.entries(t5.weights).filter(([name]) => !/block\.[1-9]/.test(name));
  const weights = Object.fromEntries(
    ofOneBlock.map(([name, [shape]]): [string, [number[]]] => {
      if (name.endsWith("relative_attention_bias.weight")) return [name, [[shape[0], 4]]];
      if (name === "shared.weight" || name === "lm_head.weight") return [name, [[31, 32]]];
      return [name, [resize(shape).map((length) => (length === 31 ? 31 : 32))]];
    }),
  );
  const path = await writeModel(folder.file("sizes"), { ...t5, config, weights } as Model);
  const model = await load(path);
  const logitsOf = (own: nn.EncoderDecoder) => noGrad(() => own.forward(tokens, targets, { lengths }));
  const { model: quantized, report } = await nn.loadModel<nn.EncoderDecoder>(path, { quantize: "q8_0" });
  expect(report.formats["q8_0"]).toBeGreaterThan(12);
  expect(report.cacheBytesPerToken).toBe(2 * 32 * 4);
  expect(errorOf(logitsOf(quantized), logitsOf(model))).toBeLessThan(0.05);
  const { model: half } = await nn.loadModel<nn.EncoderDecoder>(path, { dtype: "bfloat16" });
  expect(logitsOf(half).dtype).toBe("bfloat16");
  expect(errorOf(logitsOf(half), logitsOf(model))).toBeLessThan(0.1);
});

test.each<[string, object, string]>([
  ["another class", { architectures: ["T5ForSequenceClassification"] }, "T5ForSequenceClassification"],
  ["an unknown key", { rope_theta: 3 }, "rope_theta is not a setting of t5"],
  ["another activation", { feed_forward_proj: "gated-selu" }, 'feed_forward_proj "gated-selu" is not supported'],
  ["a decoder", { is_decoder: true }, "expected is_decoder to be false"],
  ["another vocabulary", { vocab_size: 40 }, "shared.weight"],
])("the error names the unsupported feature: %s", async (name, changes, message) => {
  await expect(nn.loadModel(await writeModel(folder.file(name), t5, changes))).rejects.toThrow(message);
});

test("inputs of the wrong shape are rejected", async () => {
  const model = await load(await writeModel(folder.file("bart"), models[indexOf("bart")]));
  using encoded = model.encode(tokens, { lengths });
  expect(() => model.decode(targets.narrow(0, 0, 2), encoded)).toThrow("expected a multiple of 3 rows");
  expect(() => model.decode(targets.repeat(1, 9), encoded)).toThrow("tokens in a generated text, got 54");
});

test("a batch of prompts generates the same tokens as each prompt alone", async () => {
  const model = new nn.GPT({ vocabularySize: 23, contextLength: 24, layers: 2, heads: 2, width: 16 });
  const generator = new Generator(5);
  noGrad(() => model.parameters().forEach((parameter) => void parameter.normal_(0, 0.4, { generator })));
  const prompts = Array.from({ length: 5 }, () =>
    Array.from({ length: random.integer(1, 9) }, () => random.integer(0, 22)),
  );
  const greedy = await nn.generateBatch(model, prompts, { maxTokens: 8, stopTokens: [3], batch: 3 });
  for (const [at, prompt] of prompts.entries()) {
    const wanted = await Array.fromAsync(nn.generate(model, prompt, { maxTokens: 8, temperature: 0, stopTokens: [3] }));
    expect(greedy[at][0].tokens).toEqual(wanted);
  }
  const options = { maxTokens: 6, numBeams: 3, numReturnSequences: 3, stopTokens: [3] };
  const together = await nn.generateBatch(model, prompts, options);
  for (const [at, prompt] of prompts.entries()) {
    const [alone] = await nn.generateBatch(model, [prompt], options);
    expect(together[at].map((result) => result.tokens)).toEqual(alone.map((result) => result.tokens));
    const first = await likelihood(model, prompt, alone[0].tokens, alone[0].finishReason === "stop");
    expect(alone[0].score!).toBeCloseTo(first, 4);
  }
  const sampled = (own: object) => nn.generateBatch(model, prompts, { maxTokens: 5, temperature: 1, ...own });
  expect(await sampled({ seed: 4 })).toEqual(await sampled({ seed: 4 }));
  expect((await sampled({ seed: 4, numReturnSequences: 2 }))[0].length).toBe(2);
  expect(sampled({ numBeams: 2 })).rejects.toThrow("beam search does not sample");
  expect(nn.generateBatch(model, prompts, { numReturnSequences: 2 })).rejects.toThrow("at most numBeams (1)");
});

/** The mean of ln p of tokens after a prompt, computed without a cache. */
async function likelihood(model: nn.GPT, prompt: number[], tokens: readonly number[], isStopped: boolean) {
  const all = [...prompt, ...tokens, ...(isStopped ? [3] : [])];
  const logits = noGrad(() => model.forward(tensor([all], { dtype: "int32" })).logSoftmax(-1));
  const values = logits.select(0, 0).toArray() as number[][];
  const chosen = all.slice(prompt.length).map((token, at) => values[prompt.length - 1 + at][token]);
  return chosen.reduce((sum, value) => sum + value, 0) / chosen.length;
}
