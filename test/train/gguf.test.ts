/** The GGUF files of `orchard quantize`: names, rows and metadata as llama.cpp reads them. */
import { describe, expect, test } from "bun:test";
import { ByteTokenizer } from "../../src/data/byte_tokenizer.ts";
import { Gpt2Tokenizer } from "../../src/data/gpt2_tokenizer.ts";
import { data, Generator, nn, noGrad, type QuantizedTensor, type Tensor, tensor } from "../../src/index.ts";
import { ggufMetadata } from "../../src/train/gguf_metadata.ts";
import { fromGgufWeights, toGgufWeights, type Weights } from "../../src/train/gguf_names.ts";
import { makeModel } from "../../src/train/model.ts";
import { presets, type Settings } from "../../src/train/settings.ts";
import { bytesIn } from "../io/bytes.ts";
import { on } from "../quant/fixtures.ts";

const sizes = { ...presets.tiny, width: 64, heads: 2, layers: 2 } as const;
const runs: Readonly<Record<string, Settings>> = {
  gpt: { ...sizes, architecture: "gpt" },
  llama: { ...sizes, architecture: "llama" },
};
const modelOf = (settings: Settings) => makeModel(settings, 256, new Generator(4)).eval();
const bytesOf = (own: Tensor | QuantizedTensor) => Buffer.from(bytesIn("parts" in own ? own.parts.packed : own));

/** The names that llama.cpp's `llama-arch.cpp` lists for each architecture. */
const blockNames = {
  gpt: ["attn_norm", "attn_qkv", "attn_output", "ffn_norm", "ffn_up", "ffn_down"].flatMap((name) => [
    `${name}.weight`,
    `${name}.bias`,
  ]),
  llama: ["attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"].map(
    (name) => `${name}.weight`,
  ),
};
const otherNames = {
  gpt: ["token_embd.weight", "position_embd.weight", "output_norm.weight", "output_norm.bias"],
  llama: ["token_embd.weight", "output_norm.weight"],
};

describe.each(["gpt", "llama"] as const)("GGUF files of the model %s", (architecture) => {
  const settings = runs[architecture];

  test("the file has llama.cpp's names", () => {
    const names = Object.keys(toGgufWeights(settings, modelOf(settings).quantizedState()));
    const blocks = [0, 1].flatMap((at) => blockNames[architecture].map((name) => `blk.${at}.${name}`));
    expect(names.toSorted()).toEqual([...otherNames[architecture], ...blocks].toSorted());
  });

  test.each(["float32", "q8_0"])(
    "the model is read back bit for bit from a file in %s, and computes the same",
    (format) => {
      const model = modelOf(settings);
      if (format === "q8_0") nn.quantizeModel(model, { format });
      const state = model.quantizedState();
      const back = fromGgufWeights(settings, toGgufWeights(settings, state));
      expect(Object.keys(back).toSorted()).toEqual(Object.keys(state).toSorted());
      for (const [name, own] of Object.entries(state)) {
        expect([name, back[name].shape]).toEqual([name, own.shape]);
        expect([name, bytesOf(back[name]).equals(bytesOf(own))]).toEqual([name, true]);
      }
      const loaded = modelOf({ ...settings, seed: 5 });
      nn.loadQuantized(loaded, back);
      const tokens = tensor([[1, 2, 3]], { dtype: "int32" });
      const [expected, got] = [model, loaded].map((own) =>
        noGrad(() => on("cpu", () => own.forward(tokens))).toArray(),
      );
      expect(got).toEqual(expected);
    },
  );

  test("a model with other names is not changed, so that the loader can reject it", () => {
    const weights: Weights = toGgufWeights(settings, modelOf(settings).quantizedState());
    const back = fromGgufWeights(settings, { ...weights, "blk.7.attn_q.weight": weights["token_embd.weight"] });
    expect(Object.keys(back)).toContain("blk.7.attn_q.weight");
    const { "blk.0.ffn_up.weight": _, ...fewer } = weights;
    expect(Object.keys(fromGgufWeights(settings, fewer))).not.toContain("blocks.0.feedForward.up.weight");
  });

  test("the file has the sizes that llama.cpp requires", () => {
    const metadata = ggufMetadata(settings, modelOf(settings), new ByteTokenizer());
    const prefix = architecture === "gpt" ? "gpt2" : "llama";
    expect(metadata["general.architecture"]).toBe(prefix);
    const uint32 = (value: number) => ({ type: "uint32" as const, value });
    const expected = {
      context_length: uint32(32),
      embedding_length: uint32(64),
      block_count: uint32(2),
      feed_forward_length: uint32(architecture === "gpt" ? 256 : 192),
      "attention.head_count": uint32(2),
    };
    for (const [key, value] of Object.entries(expected)) expect(metadata[`${prefix}.${key}`]).toEqual(value);
    if (architecture === "llama") expect(metadata["llama.rope.dimension_count"]).toEqual(uint32(32));
  });
});

test("rows of queries and keys are permuted as by convert_hf_to_gguf.py's permute", () => {
  const settings = runs.llama;
  const { heads, width } = settings;
  const name = "blocks.0.attention.queryKeyValue.weight";
  const state = modelOf(settings).quantizedState();
  const rows = (state[name] as Tensor).toArray() as number[][];
  const weights = toGgufWeights(settings, { [name]: state[name] });
  // weights.reshape(heads, 2, width / heads / 2, columns).swapaxes(1, 2).reshape(weights.shape)
  const half = width / heads / 2;
  const permuted = (own: number[][]) =>
    Array.from({ length: heads }, (_, head) =>
      Array.from({ length: half }, (__, at) => [0, 1].map((side) => own[(head * 2 + side) * half + at])).flat(),
    ).flat();
  for (const [at, letter] of ["q", "k", "v"].entries()) {
    const own = rows.slice(at * width, (at + 1) * width);
    expect((weights[`blk.0.attn_${letter}.weight`] as Tensor).toArray()).toEqual(letter === "v" ? own : permuted(own));
  }
});

describe("tokens of the vocabulary are written", () => {
  const settings = runs.gpt;
  const valuesOf = (metadata: Readonly<Record<string, unknown>>, key: string) =>
    (metadata[`tokenizer.ggml.${key}`] as { value: readonly (string | number)[] }).value;

  test("tokens of bytes are GPT-2's characters for them, without merges", () => {
    const metadata = ggufMetadata(settings, modelOf(settings), new ByteTokenizer());
    const tokens = valuesOf(metadata, "tokens");
    expect([tokens.length, new Set(tokens).size]).toEqual([256, 256]);
    expect([" ", "\n", "A", "\0", "é"[0]].map((text) => tokens[text.charCodeAt(0)])).toEqual(["Ġ", "Ċ", "A", "Ā", "é"]);
    expect([tokens[0x7f], tokens[0xad]]).toEqual(["ġ", "Ń"]);
    expect(valuesOf(metadata, "merges")).toEqual([]);
  });

  test("GPT-2's tokens and merges are those of its published files", () => {
    const metadata = ggufMetadata(settings, modelOf(settings), new Gpt2Tokenizer());
    const [tokens, merges, types] = ["tokens", "merges", "token_type"].map((key) => valuesOf(metadata, key));
    expect([tokens.length, tokens[50_256], tokens[15_496], tokens[995]]).toEqual([
      50_257,
      "<|endoftext|>",
      "Hello",
      "Ġworld",
    ]);
    expect([merges.length, merges.slice(0, 7)]).toEqual([50_000, ["Ġ t", "Ġ a", "h e", "i n", "r e", "o n", "Ġt he"]]);
    expect([types[0], types[50_256]]).toEqual([1, 3]);
  });

  test("the metadata of a trained tokenizer list its merges and their tokens in order", () => {
    const tokenizer = data.trainBpe(["the cat sat on the mat with the hat"], { size: 262 });
    const metadata = ggufMetadata(settings, modelOf(settings), tokenizer);
    const [tokens, merges, types] = ["tokens", "merges", "token_type"].map((key) => valuesOf(metadata, key));
    expect([tokens.length, tokens[0], types[0], types[1]]).toEqual([262, "<|endoftext|>", 3, 1]);
    expect(merges).toEqual(tokenizer.toJSON().model.merges.map((merge) => merge.join(" ")));
    for (const [at, merge] of merges.entries()) expect(tokens[257 + at]).toBe(String(merge).replace(" ", ""));
  });
});
