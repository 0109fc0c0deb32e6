/** Files of encoders: older names, other dtypes, quantized weights, and rejected files. */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { io, nn, noGrad, type Tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { answers, errorOf, families, kept, lengths, weight } from "./oracle.ts";

const folder = testFolder("loading");
const { config, shapes } = families.bert;
const tokens = answers["tokens"];
const statesOf = (model: nn.Encoder) => kept(noGrad(() => model.hiddenStates(tokens, { lengths })));

/** A BERT without a head; its sizes 16 and 20 become 32 and 64. */
async function write(
  name: string,
  rename: (key: string) => string = (key) => key,
  changes: object = {},
): Promise<string> {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  const sizes = { hidden_size: 32, intermediate_size: 64, architectures: ["BertModel"] };
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, ...sizes, ...changes }));
  const larger = new Map([
    [16, 32],
    [20, 64],
  ]);
  const tensors = Object.entries(shapes.none).map(([key, shape]): [string, Tensor] => [
    rename(key),
    weight(
      key,
      shape.map((size) => larger.get(size) ?? size),
    ),
  ]);
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
  return path;
}

test("TensorFlow's names of norms, prefixes, and weights of other heads are accepted", async () => {
  const { model } = await nn.loadModel<nn.Encoder>(await write("new"));
  const older = await write("old", (key) =>
    `bert.${key}`.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"),
  );
  const { model: same } = await nn.loadModel<nn.Encoder>(older);
  expect(errorOf(statesOf(same), statesOf(model))).toBe(0);
  expect([same.task, same.tokenizer, same.contextLength, same.vocabularySize]).toEqual([undefined, undefined, 64, 31]);
});

test("quantized weights and other dtypes give nearly the same results", async () => {
  const path = await write("plain");
  const { model } = await nn.loadModel<nn.Encoder>(path);
  const { model: quantized, report } = await nn.loadModel<nn.Encoder>(path, { quantize: "q8_0" });
  // six matrices in each of two blocks, and the token embedding
  expect(report.formats["q8_0"]).toBe(13);
  expect(report.cacheBytesPerToken).toBe(0);
  expect(errorOf(statesOf(quantized), statesOf(model))).toBeLessThan(0.05);
  const { model: half } = await nn.loadModel<nn.Encoder>(path, { dtype: "float16" });
  expect(statesOf(half).dtype).toBe("float16");
  expect(errorOf(statesOf(half), statesOf(model))).toBeLessThan(0.01);
});

test.each<[string, object, string]>([
  [
    "a head that is not supported",
    { architectures: ["BertForNextSentencePrediction"] },
    "BertForNextSentencePrediction",
  ],
  ["a decoder", { is_decoder: true }, "expected is_decoder to be false"],
  ["another activation", { hidden_act: "relu6" }, 'got "relu6"'],
  ["other sizes", { num_attention_heads: 5 }, "expected hidden_size to be a multiple of num_attention_heads"],
  ["another vocabulary", { vocab_size: 40 }, "expected [40, 32], got F32[31, 32]"],
])("the error names the unsupported feature: %s", async (name, changes, message) => {
  const path = await write(name, undefined, changes);
  await expect(nn.loadModel(path)).rejects.toThrow(message);
});

test("inputs of the wrong shape are rejected", async () => {
  const { model } = await nn.loadModel<nn.Encoder>(await write("inputs"));
  for (const wrong of [[12], [12, 13]])
    expect(() => model.forward(tokens, { lengths: wrong })).toThrow("from 1 to 12 for each of 2 rows");
  expect(() => model.forward(tokens, { tokenTypes: tokens.narrow(1, 0, 3) })).toThrow("expected tokenTypes to have");
  const long = tokens.repeat(1, 6);
  expect(() => model.forward(long)).toThrow("expected at most 64 tokens, got 72");
});
