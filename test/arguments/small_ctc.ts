/** Writes a small wav2vec2 model in the form of `transformers`, and loads it: only public functions are used. */
import { join } from "node:path";
import { io, nn, ones, zeros } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

const WIDTH = 4;
const config = {
  model_type: "wav2vec2",
  architectures: ["Wav2Vec2ForCTC"],
  vocab_size: 3,
  hidden_size: WIDTH,
  num_hidden_layers: 1,
  num_attention_heads: 1,
  intermediate_size: WIDTH,
  conv_dim: [WIDTH],
  conv_stride: [320],
  conv_kernel: [400],
  num_conv_pos_embeddings: 3,
  num_conv_pos_embedding_groups: 1,
};

const both = (name: string, rows: number, columns: number) => ({
  [`${name}.weight`]: ones([rows, columns]).mul(0.1),
  [`${name}.bias`]: zeros([rows]),
});
const norm = (name: string) => ({ [`${name}.weight`]: ones([WIDTH]), [`${name}.bias`]: zeros([WIDTH]) });
const linear = (name: string) => both(name, WIDTH, WIDTH);

/** @param isClassifier whether the head is a classifier of two labels */
export async function smallCtc(isClassifier = false): Promise<nn.Wav2Vec2> {
  const folder = testFolder("small_ctc");
  const write = (name: string, value: unknown) => Bun.write(join(folder.path, name), JSON.stringify(value));
  const head = { architectures: ["Wav2Vec2ForSequenceClassification"], classifier_proj_size: WIDTH };
  await write("config.json", { ...config, ...(isClassifier && head) });
  await write("vocab.json", { "<pad>": 0, "|": 1, A: 2 });
  const [body, block] = ["wav2vec2", "wav2vec2.encoder.layers.0"];
  await io.saveSafetensors(join(folder.path, "model.safetensors"), {
    [`${body}.feature_extractor.conv_layers.0.conv.weight`]: ones([WIDTH, 1, 400]).mul(0.1),
    ...norm(`${body}.feature_extractor.conv_layers.0.layer_norm`),
    ...norm(`${body}.feature_projection.layer_norm`),
    ...linear(`${body}.feature_projection.projection`),
    [`${body}.encoder.pos_conv_embed.conv.weight`]: ones([WIDTH, WIDTH, 3]).mul(0.1),
    [`${body}.encoder.pos_conv_embed.conv.bias`]: zeros([WIDTH]),
    ...norm(`${body}.encoder.layer_norm`),
    ...norm(`${block}.layer_norm`),
    ...norm(`${block}.final_layer_norm`),
    ...Object.assign({}, ...["q", "k", "v", "out"].map((part) => linear(`${block}.attention.${part}_proj`))),
    ...linear(`${block}.feed_forward.intermediate_dense`),
    ...linear(`${block}.feed_forward.output_dense`),
    ...(isClassifier ? { ...linear("projector"), ...both("classifier", 2, WIDTH) } : both("lm_head", 3, WIDTH)),
  });
  return (await nn.loadModel<nn.Wav2Vec2>(folder.path)).model;
}
