/** Converts the image settings of an mmproj file to those of the model's `preprocessor_config.json`. */
import { tupleOf } from "../../../../../core/tuples.ts";
import type { GgufReader } from "../../../../../io/gguf/file.ts";
import type { Json } from "../../../../../io/json.ts";
import type { Settings } from "../../settings.ts";
import { mmprojSettings, projectorTypeOf, projectorTypes } from "./describe.ts";

/** The minimum and maximum number of tokens per image in llama.cpp's version of Qwen's processors. */
const QWEN_TOKENS = [8, 4096] as const;

/** Returns the settings of an image processor. @throws {ArgumentError} `unknownProjector` */
export function processorSettings(file: GgufReader, operation: string): Settings {
  const settings = mmprojSettings(file, operation);
  const { family } = projectorTypes[projectorTypeOf(settings)];
  const [side, patch] = [settings.whole("vision.image_size"), settings.whole("vision.patch_size")];
  const size = { height: side, width: side };
  const normal = { image_mean: settings.get("vision.image_mean"), image_std: settings.get("vision.image_std") };
  const fields = (type: string, others: Readonly<Record<string, Json>>): Settings =>
    settings.with(
      new Map<string, unknown>(Object.entries({ image_processor_type: `${type}ImageProcessor`, ...normal, ...others })),
    );
  if (family === "gemma3") return fields("Gemma3", { size });
  if (family === "llava")
    return file.has("v.class_embd")
      ? fields("CLIP", { size: { shortest_edge: side }, crop_size: size })
      : fields("Siglip", { size });
  if (family === "internvl")
    return fields("GotOcr2", {
      size,
      min_patches: settings.wholeIfAny("vision.preproc_min_tiles") ?? 1,
      max_patches: settings.wholeIfAny("vision.preproc_max_tiles") ?? 12,
    });
  if (family === "idefics3") {
    const longest = settings.wholeIfAny("vision.preproc_image_size") ?? side;
    return fields("Idefics3", { size: { longest_edge: longest }, max_image_size: { longest_edge: side } });
  }
  const merge = settings.wholeIfAny("vision.spatial_merge_size") ?? 2;
  const [least, most] = tupleOf(
    QWEN_TOKENS.map((count) => count * (merge * patch) ** 2),
    2,
  );
  return fields("Qwen2VL", {
    patch_size: patch,
    merge_size: merge,
    temporal_patch_size: 2,
    min_pixels: settings.wholeIfAny("vision.image_min_pixels") ?? least,
    max_pixels: settings.wholeIfAny("vision.image_max_pixels") ?? most,
  });
}
