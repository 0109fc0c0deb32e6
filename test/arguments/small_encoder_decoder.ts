/** Writes a small T5 in the form of `transformers`, and loads it: only public functions are used. */
import { join } from "node:path";
import { io, nn, ones, tensor } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

const WIDTH = 4;
const attention = ["q", "k", "v", "o"];

const weights = () => {
  const block = (path: string, parts: readonly string[]) =>
    parts.flatMap((part, at) => [
      ...(part === "DenseReluDense" ? ["wi", "wo"] : attention).map((name) => `${path}.layer.${at}.${part}.${name}`),
      `${path}.layer.${at}.layer_norm`,
    ]);
  const names = [
    ...block("encoder.block.0", ["SelfAttention", "DenseReluDense"]),
    ...block("decoder.block.0", ["SelfAttention", "EncDecAttention", "DenseReluDense"]),
    "encoder.final_layer_norm",
    "decoder.final_layer_norm",
  ];
  const tables = ["encoder", "decoder"].map((side) => `${side}.block.0.layer.0.SelfAttention.relative_attention_bias`);
  return Object.fromEntries([
    ...names.map((name) => [`${name}.weight`, name.endsWith("norm") ? ones([WIDTH]) : ones([WIDTH, WIDTH]).mul(0.1)]),
    ...tables.map((name) => [`${name}.weight`, ones([4, 2])]),
    // the end token is the most probable one, so that texts end even if a hostile maxTokens is huge
    ["shared.weight", tensor([0.1, 0.1, 2].map((value) => [value, value, value, value]))],
  ]);
};

/** Loads a T5 whose config describes a translation from `a` to `b`. */
export async function smallEncoderDecoder(): Promise<nn.EncoderDecoder> {
  const folder = testFolder("encoder-decoder");
  const config = {
    model_type: "t5",
    vocab_size: 3,
    d_model: WIDTH,
    d_kv: 2,
    d_ff: WIDTH,
    num_layers: 1,
    num_heads: 2,
    relative_attention_num_buckets: 4,
    decoder_start_token_id: 0,
    eos_token_id: 2,
    max_length: 3,
    task_specific_params: { translation_a_to_b: { prefix: "b" } },
  };
  const tokenizer = {
    model: { type: "BPE", vocab: { a: 0, b: 1 }, merges: [] },
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: "ByteLevel" },
    added_tokens: [{ id: 2, content: "</s>", special: true }],
  };
  const write = (name: string, value: unknown) => Bun.write(join(folder.path, name), JSON.stringify(value));
  await write("config.json", config);
  await write("tokenizer.json", tokenizer);
  await write("tokenizer_config.json", { eos_token: "</s>" });
  await io.saveSafetensors(join(folder.path, "model.safetensors"), weights());
  return (await nn.loadModel<nn.EncoderDecoder>(folder.path)).model;
}
