/** Writes a small Whisper model in the form of `transformers`, and loads it: only public functions are used. */
import { join } from "node:path";
import { io, nn, ones, zeros } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

const [WIDTH, POSITIONS, TIMES] = [4, 4, 9];
const special = ["endoftext", "startoftranscript", "en", "translate", "transcribe", "nospeech", "notimestamps"];
const config = {
  model_type: "whisper",
  vocab_size: TIMES + POSITIONS + 1,
  d_model: WIDTH,
  num_mel_bins: 80,
  encoder_layers: 1,
  encoder_attention_heads: 1,
  encoder_ffn_dim: WIDTH,
  decoder_layers: 1,
  decoder_attention_heads: 1,
  decoder_ffn_dim: WIDTH,
  max_source_positions: POSITIONS,
  max_target_positions: 16,
  activation_function: "gelu",
  eos_token_id: 2,
  decoder_start_token_id: 3,
};

const table = (name: string, rows: number) => ({ [`${name}.weight`]: ones([rows, WIDTH]) });
const linear = (name: string, hasBias = true) => ({
  [`${name}.weight`]: ones([WIDTH, WIDTH]).mul(0.1),
  ...(hasBias && { [`${name}.bias`]: zeros([WIDTH]) }),
});
const norm = (name: string) => ({ [`${name}.weight`]: ones([WIDTH]), [`${name}.bias`]: zeros([WIDTH]) });
const conv = (name: string, inputs: number) => ({
  [`${name}.weight`]: ones([WIDTH, inputs, 3]).mul(0.1),
  [`${name}.bias`]: zeros([WIDTH]),
});
const attention = (name: string) => ({
  ...linear(`${name}.q_proj`),
  ...linear(`${name}.k_proj`, false),
  ...linear(`${name}.v_proj`),
  ...linear(`${name}.out_proj`),
  ...norm(`${name}_layer_norm`),
});
const block = (name: string) => ({
  ...attention(`${name}.self_attn`),
  ...linear(`${name}.fc1`),
  ...linear(`${name}.fc2`),
  ...norm(`${name}.final_layer_norm`),
});

export async function smallWhisper(): Promise<nn.Whisper> {
  const folder = testFolder("whisper");
  const write = (name: string, value: unknown) => Bun.write(join(folder.path, name), JSON.stringify(value));
  await write("config.json", config);
  await write("generation_config.json", {
    is_multilingual: true,
    lang_to_id: { "<|en|>": 4 },
    task_to_id: { translate: 5, transcribe: 6 },
    no_timestamps_token_id: TIMES - 1,
    suppress_tokens: [3, 4, 5, 6, 7],
    begin_suppress_tokens: [2],
  });
  await write("tokenizer.json", {
    model: { type: "BPE", vocab: { a: 0, b: 1 }, merges: [] },
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: "ByteLevel" },
    added_tokens: special.map((name, at) => ({ id: 2 + at, content: `<|${name}|>`, special: true })),
  });
  await write("tokenizer_config.json", { eos_token: "<|endoftext|>" });
  await io.saveSafetensors(join(folder.path, "model.safetensors"), {
    ...conv("model.encoder.conv1", 80),
    ...conv("model.encoder.conv2", WIDTH),
    ...table("model.encoder.embed_positions", POSITIONS),
    ...block("model.encoder.layers.0"),
    ...norm("model.encoder.layer_norm"),
    ...table("model.decoder.embed_tokens", config.vocab_size),
    ...table("model.decoder.embed_positions", 16),
    ...block("model.decoder.layers.0"),
    ...attention("model.decoder.layers.0.encoder_attn"),
    ...norm("model.decoder.layer_norm"),
  });
  return (await nn.loadModel<nn.Whisper>(folder.path)).model;
}
