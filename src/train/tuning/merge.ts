/** `orchard merge`: merges an adapter into a model's weights and writes the model in its original format. */
import { cpSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { shownPath } from "../../core/format.ts";
import { counted } from "../../core/plural.ts";
import { reportErrors } from "../../core/report_errors.ts";
import { withFileErrors } from "../../io/file_errors.ts";
import { openGgufFor } from "../../io/gguf/open.ts";
import { saveGguf } from "../../io/gguf/save.ts";
import { locateModel } from "../../io/hub/locate.ts";
import { openFor } from "../../io/safetensors/open.ts";
import { saveSafetensors } from "../../io/safetensors/save.ts";
import { Decoder } from "../../nn/models/decoder/decoder.ts";
import { Encoder } from "../../nn/models/encoder/encoder.ts";
import { readConfig } from "../../nn/models/hugging_face/config.ts";
import type { ArchitectureName } from "../../nn/models/loading/architectures.ts";
import { quantizationKeys } from "../../nn/models/loading/config_fields.ts";
import type { EncoderName } from "../../nn/models/loading/encoder/architectures.ts";
import { encoderPlaces } from "../../nn/models/loading/encoder/names.ts";
import { loadModel } from "../../nn/models/loading/load_model.ts";
import { type Place, placesOf, type Style } from "../../nn/models/loading/names.ts";
import { placesIn as placesOfImages } from "../../nn/models/loading/vision/names.ts";
import type { AdaptableModel, LoraAdapter } from "../../nn/models/lora/lora.ts";
import { loadLora } from "../../nn/models/lora/peft.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { transpose } from "../../ops/view/permute.ts";
import type { GgmlFormat } from "../../quant/formats.ts";
import { quantizeGgml } from "../../quant/quantize.ts";
import { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Runs `orchard merge`. Returns the exit code. */
export const runMerge = (path: string, adapter: string, { out }: { readonly out: string }): Promise<number> =>
  reportErrors(async () => {
    const count = await mergeModel(path, adapter, out);
    console.log(`${shownPath(out)}: merged the adapter into ${counted(count, "layer")}`);
    return 0;
  });

/**
 * Merges an adapter into a model and writes the result. Tensors keep their names, dtypes and formats in the checkpoint.
 * For a folder, the config, the tokenizer and the template are copied, and the weights are written to one file; for a
 * GGUF file, the metadata is copied. Returns the number of adapted layers.
 *
 * @param out a folder without a model, or for a GGUF file another `.gguf` file
 *
 * @throws {ArgumentError} for any other kind of `out`, or if it already exists. @throws {FileError} and errors of
 *   `loadModel` and `loadLora`.
 */
export async function mergeModel(given: string, adapter: string, out: string): Promise<number> {
  const path = await locateModel("merge", given);
  checkOut(path, out);
  if (!path.endsWith(".gguf")) checkPlain(path);
  const { model, source } = await loadModel<AdaptableModel>(path);
  const loaded = loadLora(model, adapter);
  await (source === "gguf" ? writeGguf : writeFolder)(path, loaded, out);
  return loaded.layers.size;
}

function checkOut(path: string, out: string): void {
  const isGguf = path.endsWith(".gguf") && statSync(path, { throwIfNoEntry: false })?.isFile();
  const fail = (code: string, expected: string) => new ArgumentError("merge", code, `expected ${expected}, got ${out}`);
  if (isGguf && !out.endsWith(".gguf")) throw fail("notAGgufFile", "a .gguf file for one");
  if (!isGguf && out.endsWith(".gguf")) throw fail("notAFolder", "a folder for a Hugging Face model");
  if (isGguf && existsSync(out)) throw fail("modelExists", "a file that does not exist");
  if (existsSync(join(out, "config.json"))) throw fail("modelExists", "a folder without a model");
}

/** Rejects weights quantized by other methods: merged weights would need that method's rounding. */
function checkPlain(folder: string): void {
  const config = new Map(Object.entries(readConfig("merge", folder)));
  const key = quantizationKeys.find((key) => (config.get(key) ?? null) !== null);
  if (key === undefined) return;
  throw new ArgumentError(
    "merge",
    "quantizedModel",
    `expected a folder with plain weights, got ${folder} with ${key}. Merge into the original model, or pass the ` +
      "adapter with --adapter",
  );
}

async function writeFolder(path: string, loaded: LoraAdapter<AdaptableModel>, out: string): Promise<void> {
  using file = openFor("merge", path);
  const tensors = file.tensors();
  for (const { name, weight } of mergedWeights(loaded, "huggingFace", file))
    tensors[name] = toDType(weight, file.tensor(name).dtype);
  withFileErrors("merge", out, () => mkdirSync(out, { recursive: true }));
  for (const name of readdirSync(path, { withFileTypes: true }))
    if (name.isFile() && /\.(json|jinja|txt|model)$/.test(name.name) && !name.name.endsWith(".index.json"))
      withFileErrors("merge", name.name, () => cpSync(join(path, name.name), join(out, name.name)));
  await saveSafetensors(join(out, "model.safetensors"), tensors, { metadata: { format: "pt" } });
}

async function writeGguf(path: string, loaded: LoraAdapter<AdaptableModel>, out: string): Promise<void> {
  using file = openGgufFor("merge", path);
  const tensors = file.tensors();
  for (const { name, weight } of mergedWeights(loaded, "gguf", file)) {
    const tensor = tensors[name];
    const isQuantized = QuantizedTensor.isQuantized(tensor) && typeof tensor.format === "string";
    tensors[name] = isQuantized ? quantizeGgml(weight, tensor.format as GgmlFormat) : toDType(weight, tensor.dtype);
  }
  // a model in several files is merged into one file
  const metadata = Object.fromEntries(Object.entries(file.metadata).filter(([key]) => !key.startsWith("split.")));
  await saveGguf(out, tensors, { metadata });
}

/** Yields the merged weights in the checkpoint's format. */
function* mergedWeights(
  { model, layers }: LoraAdapter<AdaptableModel>,
  style: Style,
  file: { has(name: string): boolean },
) {
  for (const { path, names, change } of placesIn(model, style)) {
    const layer = layers.get(path);
    if (!layer) continue;
    const name = names.map((candidate) => `${candidate}.weight`).find((candidate) => file.has(candidate))!;
    const weight: Tensor = layer.merged().weight;
    yield { name, weight: noGrad(() => (change?.kind === "transposed" ? transpose(weight, 0, 1) : weight)) };
  }
}

function placesIn(model: AdaptableModel, style: Style): readonly Place[] {
  if (model instanceof Decoder)
    return placesOf(model.description.architecture as ArchitectureName, model.description, style);
  if (model instanceof Encoder) return encoderPlaces(model.description.architecture as EncoderName, model.description);
  return placesOfImages(model);
}
