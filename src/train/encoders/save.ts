/** Writes a trained encoder as a Hugging Face folder. */
import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { withFileErrors } from "../../io/file_errors.ts";
import { saveSafetensors } from "../../io/safetensors/save.ts";
import type { Encoder } from "../../nn/models/encoder/encoder.ts";
import { sentenceModules } from "../../nn/models/loading/encoder/sentence_files.ts";
import { LoraLinear } from "../../nn/quantized/lora_linear.ts";
import { detach } from "../../ops/gradient/backward.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** A trained encoder, and the folder that it was loaded from. */
export interface TrainedEncoder {
  readonly model: Encoder;
  /** The folder of the pretrained model. */
  readonly path: string;
  /** The contents of `config.json`. */
  readonly config: Readonly<Record<string, unknown>>;
}

/**
 * Writes the config, the tokenizer and the weights in float32, with adapters merged. A sentence-transformers folder
 * keeps its modules, unless the model has a classification head. Other embedding models get modules with the defaults
 * of `nn.embed`: mean pooling, then normalization.
 *
 * @throws {FileError}
 */
export async function saveEncoder({ model, path, config }: TrainedEncoder, out: string): Promise<void> {
  withFileErrors("train", out, () => mkdirSync(out, { recursive: true }));
  const isForTexts = model.sentence !== null;
  const skipped = ["config.json", ...(isForTexts ? [] : sentenceFiles)];
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const { name } = entry;
    const isCopied = /\.(json|jinja|txt|model)$/.test(name) && !name.endsWith(".index.json") && !skipped.includes(name);
    if (!entry.isDirectory() && isCopied)
      withFileErrors("train", name, () => cpSync(join(path, name), join(out, name), { dereference: true }));
  }
  const content = JSON.stringify({ ...config, dtype: "float32", torch_dtype: undefined }, null, 2);
  withFileErrors("train", out, () => writeFileSync(join(out, "config.json"), `${content}\n`));
  if (isForTexts) await saveModules(model, path, out);
  else if (model.task !== "classify") writeModules(model, out);
  await saveSafetensors(join(out, "model.safetensors"), weightsOf(model), { metadata: { format: "pt" } });
}

/** Files that describe how texts become vectors. A classifier does not use them. */
const sentenceFiles = ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"];

/** Returns the weights by Hugging Face's names. */
function weightsOf(model: Encoder): Record<string, Tensor> {
  const found: Record<string, Tensor> = {};
  const modules = model.namedModules();
  noGrad(() => {
    for (const [path, name] of model.huggingFaceNames()) {
      const module = modules.get(path)!;
      const layer = (module instanceof LoraLinear ? module.merged() : module) as Partial<
        Record<"weight" | "bias", Tensor>
      >;
      for (const end of ["weight", "bias"] as const) if (layer[end]) found[`${name}.${end}`] = detach(layer[end]);
    }
  });
  return found;
}

/** Writes sentence-transformers modules with the defaults of `nn.embed`. */
function writeModules({ description: { width } }: Encoder, out: string): void {
  const kinds = ["Transformer", "Pooling", "Normalize"];
  const pathOf = (kind: string, index: number) => (index === 0 ? "" : `${index}_${kind}`);
  const modules = kinds.map((kind, index) => ({
    idx: index,
    name: `${index}`,
    path: pathOf(kind, index),
    type: `sentence_transformers.models.${kind}`,
  }));
  const write = (name: string, contents: object) =>
    withFileErrors("train", name, () => {
      mkdirSync(dirname(join(out, name)), { recursive: true });
      writeFileSync(join(out, name), `${JSON.stringify(contents, null, 2)}\n`);
    });
  write("modules.json", modules);
  write(join("1_Pooling", "config.json"), { word_embedding_dimension: width, pooling_mode_mean_tokens: true });
}

/**
 * Checks that the weights can be saved under the names in their checkpoint.
 *
 * @throws {ArgumentError} `unsupportedModel` for DeBERTa v1 and language models, whose checkpoints store weights in
 * another layout.
 */
export function checkSavable(model: Encoder): void {
  const { architecture } = model.description;
  if (architecture !== "deberta" && !model.decoder) return;
  throw new ArgumentError(
    "train",
    "unsupportedModel",
    `expected an encoder whose weights can be saved, got ${architecture}; train it in a program, with nn.lora`,
  );
}

/** Copies the settings of pooling and normalization, and writes the linear layers. */
async function saveModules({ sentence }: Encoder, path: string, out: string): Promise<void> {
  let layer = 0;
  for (const { type, path: place } of sentenceModules(path)) {
    const settings = join(path, place, "config.json");
    if (type === "Transformer" || !existsSync(settings)) continue;
    const copy = join(out, place, "config.json");
    withFileErrors("train", copy, () => cpSync(settings, copy, { dereference: true }));
    if (type !== "Dense") continue;
    const { weight, bias } = sentence!.layers[layer++];
    const tensors = { "linear.weight": detach(weight), ...(bias && { "linear.bias": detach(bias) }) };
    await saveSafetensors(join(out, place, "model.safetensors"), tensors, { metadata: { format: "pt" } });
  }
}
