/** Embeddings by encoders: batches against single texts, poolings against formulas, sentence-transformers' files. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { io, nn, noGrad, type Tensor, tensor } from "../../../src/index.ts";
import { Random } from "../../ops/samples.ts";
import { testFolder } from "../../support/folder.ts";
import { seed } from "../../support/some.ts";
import { errorOf, families, loadEncoder, names, weight, writeModel } from "../models/encoder/oracle.ts";
import { folderOf, load } from "./models.ts";

const folder = testFolder("embed");
const random = new Random(seed);
const poolings = ["first", "max", "mean", "meanSqrt", "weightedMean", "last"] as const;
const drawn = (most: number) => Array.from({ length: random.integer(1, most) }, () => random.integer(4, 22));
const rowsOf = (x: Tensor): number[][] => {
  const [values, width] = [Array.from(x.dataSync(), Number), x.shape[1]];
  return Array.from({ length: x.shape[0] }, (_, row) => values.slice(row * width, (row + 1) * width));
};

describe.each(names)("vectors of texts by the model %s", (name) => {
  test("padding and the order of batches do not change results", async () => {
    const path = folder.file(name);
    await writeModel(path, name, families[name].cases[0]);
    const model = await loadEncoder(path);
    const texts = Array.from({ length: 7 }, () => drawn(14));
    for (const pooling of [poolings[random.integer(0, 5)], "mean"] as const) {
      const options = { pooling, normalize: random.integer(0, 1) === 1 };
      const all = await nn.embed(model, texts, { ...options, batch: random.integer(2, 4) });
      const single: number[][] = [];
      for (const text of texts) single.push(...rowsOf(await nn.embed(model, [text], options)));
      expect(errorOf(all, tensor(single))).toBeLessThan(1e-5);
    }
  });
});

test.each(["bert", "modernbert"] as const)("a block of %s computes only the tokens of the texts", async (name) => {
  const path = folder.file(`packed ${name}`);
  await writeModel(path, name, families[name].cases[0]);
  const model = await loadEncoder(path);
  const shapes: (readonly number[])[] = [];
  model.blocks[0].feedForward.registerForwardPreHook((_, [x]) => void shapes.push((x as Tensor).shape));
  const texts = Array.from({ length: 3 }, (_, at) => drawn(9 + at));
  await nn.embed(model, [...texts, [...texts[2], 5]]);
  const width = model.description.width;
  const tokens = texts.reduce((sum, { length }) => sum + length, texts[2].length + 1);
  expect(shapes.map((shape) => [...shape])).toEqual([[1, tokens, width]]);
});

/** The formulas of sentence-transformers, in float64. */
const formulas: Record<(typeof poolings)[number], (column: readonly number[]) => number> = {
  first: (column) => column[0],
  last: (column) => column.at(-1)!,
  max: (column) => Math.max(...column),
  mean: (column) => column.reduce((sum, value) => sum + value, 0) / column.length,
  meanSqrt: (column) => column.reduce((sum, value) => sum + value, 0) / Math.sqrt(column.length),
  weightedMean: (column) =>
    column.reduce((sum, value, at) => sum + (at + 1) * value, 0) / ((column.length * (column.length + 1)) / 2),
};
const columnsOf = (model: nn.Encoder, tokens: readonly number[]): number[][] => {
  const states = noGrad(() => model.hiddenStates(tensor([[...tokens]], { dtype: "int32" })));
  const [count, width] = states.shape.slice(1) as [number, number];
  const values = Array.from(states.dataSync(), Number);
  return Array.from({ length: width }, (_, at) => Array.from({ length: count }, (_, row) => values[row * width + at]));
};
const unit = (row: readonly number[]): number[] => row.map((value) => value / Math.hypot(...row));

test.each(poolings)("%s: vectors equal those of sentence-transformers", async (pooling) => {
  const model = await load(await folderOf(folder.file("bare"), "classify", { isBare: true }));
  const texts = Array.from({ length: 3 }, () => drawn(9));
  const wanted = texts.map((tokens) => columnsOf(model, tokens).map(formulas[pooling]));
  const got = await nn.embed(model, texts, { pooling, normalize: false });
  expect(errorOf(got, tensor(wanted))).toBeLessThan(1e-6);
  const short = await nn.embed(model, texts, { pooling, truncateDim: 5 });
  expect(errorOf(short, tensor(wanted.map((row) => unit(row.slice(0, 5)))))).toBeLessThan(1e-6);
});

interface Files {
  readonly modules: readonly (readonly [type: string, path: string])[];
  readonly [path: string]: unknown;
}

async function sentenceFolder(name: string, { modules, ...files }: Files): Promise<string> {
  // as in models that were derived from a model with a head
  const architectures = ["BertForMaskedLM"];
  const path = await folderOf(folder.file(name), "classify", { isBare: true, architectures });
  const list = modules.map(([type, own], idx) => ({
    idx,
    name: `${idx}`,
    path: own,
    type: `sentence_transformers.models.${type}`,
  }));
  writeFileSync(join(path, "modules.json"), JSON.stringify(list));
  for (const [own, json] of Object.entries(files)) {
    mkdirSync(join(path, own, ".."), { recursive: true });
    writeFileSync(join(path, own), JSON.stringify(json));
  }
  return path;
}

const pooling = { word_embedding_dimension: 16, pooling_mode_mean_tokens: true, pooling_mode_cls_token: true };
const dense = { in_features: 32, out_features: 6, bias: true, activation_function: "torch.nn.modules.activation.Tanh" };
const whole: Files = {
  modules: [
    ["Transformer", ""],
    ["Pooling", "1_Pooling"],
    ["Dense", "2_Dense"],
    ["Normalize", "3_Normalize"],
  ],
  "1_Pooling/config.json": pooling,
  "2_Dense/config.json": dense,
  "config_sentence_transformers.json": {
    __version__: { pytorch: "2" },
    prompts: { query: "who ", document: "" },
    default_prompt_name: "document",
    similarity_fn_name: "cosine",
  },
  "sentence_bert_config.json": { max_seq_length: 8, do_lower_case: false },
};

test("a folder of sentence-transformers loads: poolings, a linear layer, normalization, prompts, a limit", async () => {
  const path = await sentenceFolder("sentence", whole);
  const layer = { "linear.weight": weight("linear.weight", [6, 32]), "linear.bias": weight("linear.bias", [6]) };
  await io.saveSafetensors(join(path, "2_Dense", "model.safetensors"), layer);
  const model = await load(path);
  const [w, b] = [rowsOf(layer["linear.weight"]), Array.from(layer["linear.bias"].dataSync(), Number)];
  const expected = (text: string) => {
    const columns = columnsOf(model, model.tokenizer!.encodeInputs("test", text, { maxTokens: 8 }).tokens);
    const x = [...columns.map(formulas.first), ...columns.map(formulas.mean)];
    return unit(b.map((bias, row) => Math.tanh(bias + x.reduce((sum, value, at) => sum + value * w[row][at], 0))));
  };
  const text = "wrote the first letter? Ada, Grace said: I'm";
  const check = async (options: nn.EmbedTextsOptions, wanted: number[]) =>
    expect(errorOf(await nn.embed(model, [text], options), tensor([wanted]))).toBeLessThan(1e-6);
  await check({}, expected(text));
  await check({ promptName: "query" }, expected(`who ${text}`));
  await check({ prompt: "x_y " }, expected(`x_y ${text}`));
  await check({ truncateDim: 3 }, unit(expected(text).slice(0, 3)));
  await expect(nn.embed(model, [text], { promptName: "other" })).rejects.toThrow('(query, document), got "other"');
  await expect(nn.embed(model, [text], { truncateDim: 7 })).rejects.toThrow("at most 6, got 7");
});

test.each<[string, Partial<Files>, string]>([
  [
    "module",
    {
      modules: [
        ["Transformer", ""],
        ["LSTM", "1_LSTM"],
      ],
    },
    "sentence_transformers.models.LSTM",
  ],
  ["no pooling", { modules: [["Transformer", ""]] }, "expected one Pooling, got 0"],
  ["place", { modules: [["Transformer", "0_Transformer"]] }, '"0_Transformer"'],
  ["mode", { "1_Pooling/config.json": { pooling_mode: "median" } }, '"median"'],
  ["key", { "1_Pooling/config.json": { ...pooling, stretch: 2 } }, "stretch is not a setting of Pooling"],
  ["size", { "1_Pooling/config.json": { ...pooling, word_embedding_dimension: 8 } }, "to be 16"],
  ["prompt", { "1_Pooling/config.json": { ...pooling, include_prompt: false } }, "include_prompt"],
  [
    "activation",
    { "2_Dense/config.json": { ...dense, activation_function: "torch.nn.modules.activation.ELU" } },
    "ELU",
  ],
])("the error names the unsupported feature: %s", async (name, files, message) => {
  const path = await sentenceFolder(`refused ${name}`, { ...whole, ...files } as Files);
  await expect(nn.loadModel(path)).rejects.toThrow(message);
});
