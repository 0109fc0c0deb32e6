/** Writes small BERT models in the form of `transformers`, and loads them: only public functions are used. */
import { join } from "node:path";
import { io, nn, ones, zeros } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

const WIDTH = 4;
const vocab = { a: 0, b: 1, "[MASK]": 2 };
const words = Object.keys(vocab).length;

const linear = (name: string, out: number = WIDTH) => ({
  [`${name}.weight`]: ones([out, WIDTH]).mul(0.1),
  [`${name}.bias`]: zeros([out]),
});
const norm = (name: string) => ({ [`${name}.weight`]: ones([WIDTH]), [`${name}.bias`]: zeros([WIDTH]) });
const table = (name: string, rows: number) => ({ [`${name}.weight`]: ones([rows, WIDTH]) });

/** The weights of an encoder with one layer, and those of the head of each architecture. */
const base = (prefix: string) => ({
  ...table(`${prefix}embeddings.word_embeddings`, words),
  ...table(`${prefix}embeddings.position_embeddings`, 16),
  ...table(`${prefix}embeddings.token_type_embeddings`, 2),
  ...norm(`${prefix}embeddings.LayerNorm`),
  ...Object.assign(
    {},
    ...["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
      .concat("intermediate.dense", "output.dense")
      .map((name) => linear(`${prefix}encoder.layer.0.${name}`)),
  ),
  ...norm(`${prefix}encoder.layer.0.attention.output.LayerNorm`),
  ...norm(`${prefix}encoder.layer.0.output.LayerNorm`),
});
const heads = {
  Model: () => linear("pooler.dense"),
  ForSequenceClassification: (labels: number) => ({ ...linear("bert.pooler.dense"), ...linear("classifier", labels) }),
  ForTokenClassification: (labels: number) => linear("classifier", labels),
  ForQuestionAnswering: () => linear("qa_outputs", 2),
  ForMaskedLM: () => ({
    ...linear("cls.predictions.transform.dense"),
    ...norm("cls.predictions.transform.LayerNorm"),
    "cls.predictions.bias": zeros([words]),
  }),
} as const;

/** Loads an encoder with the head of an architecture, such as `ForMaskedLM`, and this many labels. */
export async function smallEncoder(end: keyof typeof heads, labels = 2): Promise<nn.Encoder> {
  const folder = testFolder("encoder");
  const id2label = Object.fromEntries(Array.from({ length: labels }, (_, label) => [`${label}`, `B-${label}`]));
  const config = {
    model_type: "bert",
    architectures: [`Bert${end}`],
    id2label,
    vocab_size: words,
    hidden_size: WIDTH,
    intermediate_size: WIDTH,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    max_position_embeddings: 16,
  };
  const tokenizer = {
    model: { type: "BPE", vocab, merges: [] },
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: "ByteLevel" },
    added_tokens: [{ id: vocab["[MASK]"], content: "[MASK]", special: true }],
  };
  const write = (name: string, value: unknown) => Bun.write(join(folder.path, name), JSON.stringify(value));
  await write("config.json", config);
  await write("tokenizer.json", tokenizer);
  await write("tokenizer_config.json", { mask_token: "[MASK]" });
  const tensors = { ...base(end === "Model" ? "" : "bert."), ...heads[end](labels) };
  await io.saveSafetensors(join(folder.path, "model.safetensors"), tensors);
  return (await nn.loadModel<nn.Encoder>(folder.path)).model;
}
