/** `orchard merge`: a model whose weights have what an adapter learned, as a folder of Hugging Face. */
import { cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { counted } from "../../core/plural.ts";
import { withFileErrors } from "../../io/file_errors.ts";
import type { SafetensorsReader } from "../../io/safetensors/file.ts";
import { openFor } from "../../io/safetensors/open.ts";
import { saveSafetensors } from "../../io/safetensors/save.ts";
import type { ArchitectureName } from "../../nn/loading/architectures.ts";
import { loadModel } from "../../nn/loading/load_model.ts";
import { placesOf } from "../../nn/loading/names.ts";
import type { LoraAdapter } from "../../nn/lora/lora.ts";
import { loadLora } from "../../nn/lora/peft.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { transpose } from "../../ops/view/permute.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { reportErrors } from "../errors.ts";
import { shownPath } from "../format.ts";

/** Returns the exit code. */
export const runMerge = (path: string, adapter: string, { out }: { readonly out: string }): Promise<number> =>
  reportErrors(async () => {
    const count = await mergeModel(path, adapter, out);
    console.log(`${shownPath(out)}: ${counted(count, "layer")} with what was learned`);
    return 0;
  });

/**
 * Writes a model with an adapter in it: its tensors under their names in the checkpoint and in its dtype, as one file,
 * and its config, tokenizer and template. What is not adapted is copied as it is. Returns how many layers are adapted.
 *
 * @throws {ArgumentError} for a GGUF file, and a folder that has a model. @throws {FileError} and errors of `loadModel`
 * and `loadLora`.
 */
export async function mergeModel(path: string, adapter: string, out: string): Promise<number> {
  if (existsSync(join(out, "config.json")))
    throw new ArgumentError("merge", "modelExists", `expected a folder without a model, got ${out}`);
  const { model, source } = await loadModel(path);
  if (source !== "huggingFace")
    throw new ArgumentError("merge", "notAFolder", `expected a folder of Hugging Face, got ${path}`);
  const loaded = loadLora(model, adapter);
  using file = openFor("merge", path);
  const tensors = file.tensors();
  for (const [name, weight] of mergedWeights(loaded, file)) tensors[name] = weight;
  withFileErrors("merge", out, () => mkdirSync(out, { recursive: true }));
  for (const name of readdirSync(path, { withFileTypes: true }))
    if (name.isFile() && /\.(json|jinja|txt|model)$/.test(name.name) && !name.name.endsWith(".index.json"))
      withFileErrors("merge", name.name, () => cpSync(join(path, name.name), join(out, name.name)));
  await saveSafetensors(join(out, "model.safetensors"), tensors, { metadata: { format: "pt" } });
  return loaded.layers.size;
}

/** The sums, as the checkpoint has these weights. */
function* mergedWeights({ model, layers }: LoraAdapter, file: SafetensorsReader): Generator<[string, Tensor]> {
  const { architecture } = model.description;
  const places = placesOf(architecture as ArchitectureName, model.description, "huggingFace");
  for (const { path, names, change } of places) {
    const layer = layers.get(path);
    if (!layer) continue;
    const name = names.map((own) => `${own}.weight`).find((own) => file.has(own))!;
    const { weight } = layer.merged();
    const own = noGrad(() => (change?.kind === "transposed" ? transpose(weight as Tensor, 0, 1) : (weight as Tensor)));
    yield [name, toDType(own, file.tensor(name).dtype)];
  }
}
