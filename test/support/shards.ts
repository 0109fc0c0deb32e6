import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { saveSafetensors } from "../../src/io/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";

/** Saves tensors in several files with an index, as Hugging Face does, and returns the index's path. */
export async function saveShards(folder: string, shards: readonly Readonly<Record<string, Tensor>>[]): Promise<string> {
  const map: Record<string, string> = {};
  for (const [index, tensors] of shards.entries()) {
    const number = (value: number) => String(value).padStart(5, "0");
    const file = `model-${number(index + 1)}-of-${number(shards.length)}.safetensors`;
    await saveSafetensors(join(folder, file), tensors);
    for (const name of Object.keys(tensors)) map[name] = file;
  }
  const path = join(folder, "model.safetensors.index.json");
  const bytes = shards.flatMap((own) => Object.values(own)).reduce((sum, { size }) => sum + 4 * size, 0);
  writeFileSync(path, JSON.stringify({ metadata: { total_size: bytes }, weight_map: map }));
  return path;
}
