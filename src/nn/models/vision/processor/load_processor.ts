/** Reads the settings of an image processor: `preprocessor_config.json` or `processor_config.json`. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { FileError } from "../../../../core/errors.ts";
import { aPath } from "../../../../core/kinds.ts";
import { operand, parameters } from "../../../../core/parameters.ts";
import { locateCached } from "../../../../io/hub/locate.ts";
import type { Json } from "../../../../io/json.ts";
import { readConfig } from "../../hugging_face/config.ts";
import { checkKeys } from "../../loading/config_fields.ts";
import { Settings } from "../../loading/settings.ts";
import type { ImageFilter, ImageProcessing, ImageSize } from "./description.ts";
import { ImageProcessor } from "./processor.ts";

const readPath = parameters("loadImageProcessor", { path: operand(aPath) });

/**
 * Loads the image processor of a model from a folder with `preprocessor_config.json`, or with `processor_config.json`
 * of newer versions of Hugging Face's `transformers`.
 *
 * @param path a folder; or `owner/name` for a model that `orchard pull` or `nn.loadModel` downloaded
 *
 * @example
 * nn.loadImageProcessor("clip-vit-base-patch32").process(image); // float32 [1, 3, 224, 224]
 *
 * @throws {FileError} for files that can't be read. @throws {FileFormatError} for damaged ones. @throws {ArgumentError}
 * `unknownProcessor` and `unsupportedConfig` for unsupported processors and settings, which the error names.
 */
export function loadImageProcessor(path: string): ImageProcessor;
export function loadImageProcessor(...values: unknown[]): ImageProcessor {
  const path = locateCached("loadImageProcessor", readPath(values).path);
  const processor = processorIn("loadImageProcessor", path);
  if (processor) return processor;
  const message = "expected a folder with preprocessor_config.json or processor_config.json";
  throw new FileError("loadImageProcessor", "notFound", path, message);
}

/** @internal Returns the processor of a folder; undefined if it has no settings for one. */
export function processorIn(operation: string, folder: string): ImageProcessor | undefined {
  const settings = settingsIn(operation, folder);
  return settings && new ImageProcessor(describeProcessor(settings));
}

/** @internal Returns the settings of a folder's image processor; undefined if there are none. */
export function settingsIn(operation: string, folder: string): Settings | undefined {
  const read = (name: string): Settings | undefined => {
    if (!existsSync(join(folder, name))) return undefined;
    return new Settings(
      join(folder, name),
      new Map(Object.entries(readConfig(operation, folder, name))),
      "",
      operation,
    );
  };
  return read("processor_config.json")?.inner("image_processor") ?? read("preprocessor_config.json");
}

const half = [0.5, 0.5, 0.5];
const imagenet = { image_mean: [0.485, 0.456, 0.406], image_std: [0.229, 0.224, 0.225] };
const openai = {
  image_mean: [0.48145466, 0.4578275, 0.40821073],
  image_std: [0.26862954, 0.26130258, 0.27577711],
};
const standard = { image_mean: half, image_std: half };

type Fields = Readonly<Record<string, Json>>;
const steps: Fields = { do_resize: true, do_rescale: true, do_normalize: true, do_center_crop: false, do_pad: false };
const square = (side: number): Fields => ({ height: side, width: side });
const cropping = { size: { shortest_edge: 224 }, crop_size: square(224), do_center_crop: true, resample: 3 };

const panAndScan = {
  do_pan_and_scan: null,
  pan_and_scan_min_crop_size: null,
  pan_and_scan_max_num_crops: null,
  pan_and_scan_min_ratio_to_activate: null,
};
/** Images that are split into tiles of one size. Tiles need no padding, so that `do_pad` has no effect. */
const tiles = {
  size: { longest_edge: 4 * 364 },
  max_image_size: { longest_edge: 364 },
  resample: 1,
  do_pad: true,
  do_image_splitting: true,
  return_row_col_info: false,
};

/** The processors by the end of `image_processor_type`, without `ImageProcessor`, with their default settings. */
const processors: Readonly<Record<string, Fields>> = {
  ViT: { ...steps, ...standard, size: square(224), resample: 2 },
  DeiT: { ...steps, ...standard, size: square(256), crop_size: square(224), do_center_crop: true, resample: 3 },
  Beit: { ...steps, ...standard, size: square(224), crop_size: square(224), resample: 3 },
  CLIP: { ...steps, ...openai, ...cropping },
  Bit: { ...steps, ...openai, ...cropping },
  Siglip: { ...steps, ...standard, size: square(224), resample: 3 },
  Siglip2: { ...steps, ...standard, patch_size: 16, max_num_patches: 256, resample: 2 },
  DINOv3ViT: { ...steps, ...imagenet, size: square(224), resample: 2 },
  DPT: {
    ...steps,
    ...standard,
    size: square(384),
    resample: 3,
    keep_aspect_ratio: false,
    ensure_multiple_of: 1,
    size_divisor: null,
  },
  Yolos: {
    ...steps,
    ...imagenet,
    size: { shortest_edge: 800, longest_edge: 1333 },
    resample: 2,
    do_pad: true,
    max_size: 1333,
  },
  Detr: {
    ...steps,
    ...imagenet,
    size: { shortest_edge: 800, longest_edge: 1333 },
    resample: 2,
    do_pad: true,
    max_size: 1333,
  },
  RTDetr: { ...steps, ...imagenet, size: square(640), resample: 2, do_normalize: false },
  Sam: {
    ...steps,
    ...imagenet,
    size: { longest_edge: 1024 },
    resample: 2,
    do_pad: true,
    pad_size: square(1024),
    mask_size: null,
    mask_pad_size: null,
  },
  Sam2: { ...steps, ...imagenet, size: square(1024), resample: 2, mask_size: null, mask_pad_size: null },
  ConvNext: { ...steps, ...standard, size: { shortest_edge: 384 }, crop_pct: 224 / 256, resample: 3 },
  Segformer: { ...steps, ...imagenet, size: square(512), resample: 2 },
  Qwen2VL: {
    ...steps,
    ...openai,
    size: { shortest_edge: 56 * 56, longest_edge: 28 * 28 * 1280 },
    resample: 3,
    min_pixels: null,
    max_pixels: null,
    patch_size: 14,
    temporal_patch_size: 2,
    merge_size: 2,
  },
  GotOcr2: {
    ...steps,
    ...openai,
    size: square(384),
    resample: 3,
    crop_to_patches: false,
    min_patches: 1,
    max_patches: 12,
  },
  Gemma3: { ...steps, ...standard, size: square(224), resample: 2, ...panAndScan },
  Idefics3: { ...steps, ...standard, ...tiles },
  SmolVLM: { ...steps, ...standard, ...tiles },
};

/** Keys that have no effect on pixels. */
const notes: ReadonlySet<string> = new Set([
  "image_processor_type",
  "feature_extractor_type",
  "processor_class",
  "do_convert_rgb",
  "data_format",
  "device",
  "input_data_format",
  "return_tensors",
  "disable_grouping",
  "default_to_square",
  "image_seq_length",
  "auto_map",
  "use_square_size",
  "do_reduce_labels",
  "reduce_labels",
  "pad_size",
  "backend",
  "use_fast",
  "_processor_class",
  "_valid_processor_keys",
  "valid_kwargs",
  "format",
  "do_convert_annotations",
  "pad_and_return_pixel_mask",
]);

/** Returns the name of the processor in the tables. @throws {ArgumentError} `unknownProcessor` */
function nameOf(settings: Settings): string {
  const type = settings.textIfAny("image_processor_type") ?? settings.textIfAny("feature_extractor_type") ?? "";
  const name = type.replace(/(ImageProcessor(Fast|Pil)?|FeatureExtractor)$/, "");
  if (Object.hasOwn(processors, name)) return name;
  throw settings.refused(
    "unknownProcessor",
    `expected image_processor_type to be one of ${Object.keys(processors).join(", ")} with ImageProcessor, ` +
      `got "${type}"`,
  );
}

/** @internal Returns the settings of an image processor with the defaults of its class. @throws {ArgumentError} */
export function completedProcessor(settings: Settings): { readonly name: string; readonly config: Settings } {
  const name = nameOf(settings);
  const fields: Fields = { size: null, crop_size: null, rescale_factor: 1 / 255, ...processors[name] };
  checkKeys(
    settings,
    (key) => Object.hasOwn(fields, key) || notes.has(key),
    `is not a setting of ${name}ImageProcessor`,
  );
  const given = settings.entries().filter(([, value]) => value !== null && value !== undefined);
  const config = settings.with(new Map([...Object.entries(fields), ...given]));
  if (config.flag("do_pan_and_scan", false))
    throw config.refused("unsupportedConfig", "expected do_pan_and_scan to be false, got true");
  return { name, config };
}

/** @internal Converts the settings in a file to a description. */
export function describeProcessor(settings: Settings): ImageProcessing {
  const { name, config } = completedProcessor(settings);
  // A batch of YOLOS or DETR is padded to its largest image; here the images of a batch have one size.
  const padsBatches = (name === "Yolos" || name === "Detr") && config.get("pad_size") === undefined;
  if (name !== "Sam" && config.flag("do_pad") && config.get("max_image_size") === undefined && !padsBatches)
    throw config.refused("unsupportedConfig", "expected do_pad to be false, got true");
  const normalizes = config.flag("do_normalize");
  const side = name === "ConvNext" && config.flag("do_resize") ? croppedSide(config) : undefined;
  return {
    size: name === "Siglip2" || config.flag("do_resize") ? sizeOf(name, config) : undefined,
    filter: filterOf(config),
    crop: side !== undefined ? [side, side] : config.flag("do_center_crop") ? cropOf(config) : undefined,
    padding: name === "Sam" && config.flag("do_pad") ? cropOf(config, "pad_size") : undefined,
    rescale: config.flag("do_rescale") ? config.positive("rescale_factor") : 1,
    mean: normalizes ? channels(config, "image_mean") : undefined,
    std: normalizes ? channels(config, "image_std") : undefined,
    resizesFloats: name === "DINOv3ViT" ? true : undefined,
  };
}

/** The filters by their number in Pillow. */
const filterNames: readonly ImageFilter[] = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"];

function filterOf(config: Settings): ImageFilter {
  const filter = filterNames[config.whole("resample", 0)];
  if (filter) return filter;
  throw config.wrong("resample", "a number from 0 to 5", config.get("resample"));
}

function sizeOf(name: string, config: Settings): ImageSize {
  if (name === "Siglip2")
    return { kind: "patches", patch: config.whole("patch_size"), most: config.whole("max_num_patches") };
  if (name === "Qwen2VL") return areaOf(config);
  if (name === "Sam") return { kind: "longest", side: config.inner("size")?.whole("longest_edge") ?? 1024 };
  const tile = config.inner("max_image_size")?.whole("longest_edge");
  if (tile !== undefined) return { kind: "exact", height: tile, width: tile };
  const size = sizesIn(config, "size", ["CLIP", "Bit", "Yolos", "Detr", "ConvNext"].includes(name));
  if (name === "ConvNext") {
    const side = size.whole("shortest_edge");
    if (croppedSide(config) === undefined) return { kind: "exact", height: side, width: side };
    return { kind: "shortest", side: Math.floor(side / config.positive("crop_pct")) };
  }
  const [height, width, shortest, longest] = ["height", "width", "shortest_edge", "longest_edge"].map((key) =>
    size.wholeIfAny(key),
  );
  const patch = name === "Yolos" && longest !== undefined ? 16 : undefined;
  if (shortest !== undefined) return { kind: "shortest", side: shortest, longest, multiple: patch };
  if (size.get("max_height") !== undefined)
    return { kind: "within", height: size.whole("max_height"), width: size.whole("max_width") };
  if (height === undefined || width === undefined)
    throw config.wrong(
      "size",
      "an object with height and width, shortest_edge, or max_height and max_width",
      config.get("size"),
    );
  if (name !== "DPT") return { kind: "exact", height, width };
  const [multiple, keepsRatio] = [config.whole("ensure_multiple_of"), config.flag("keep_aspect_ratio")];
  return { kind: "multiple", height, width, multiple, keepsRatio };
}

/** Returns the side of ConvNeXt's crop. Images of 384 pixels and more are resized without one. */
function croppedSide(config: Settings): number | undefined {
  const side = sizesIn(config, "size", true).whole("shortest_edge");
  return side < 384 ? side : undefined;
}

/** Older files have `min_pixels` and `max_pixels`, which take precedence. */
function areaOf(config: Settings): ImageSize {
  const size = config.inner("size");
  const bound = (older: string, key: string) => config.wholeIfAny(older) ?? size?.wholeIfAny(key);
  const [least, most] = [bound("min_pixels", "shortest_edge"), bound("max_pixels", "longest_edge")];
  if (least === undefined || most === undefined)
    throw config.wrong("size", "an object with shortest_edge and longest_edge", config.get("size"));
  return { kind: "area", multiple: config.whole("patch_size") * config.whole("merge_size"), least, most };
}

/** Older files have a number, for a square or for the shortest side. */
function sizesIn(config: Settings, key: string, isShortest: boolean): Settings {
  const value = config.get(key);
  if (typeof value !== "number") return config.inner(key) ?? config.with(new Map());
  const side = config.whole(key);
  const longest = { longest_edge: config.get("max_size") }; // from older files of YOLOS
  const entries = isShortest ? { shortest_edge: side, ...longest } : { height: side, width: side };
  return config.with(new Map(Object.entries(entries)));
}

function cropOf(config: Settings, key = "crop_size"): readonly [height: number, width: number] {
  const size = sizesIn(config, key, false);
  return [size.whole("height"), size.whole("width")];
}

/** Returns one number for each channel, or one number for all. */
function channels(config: Settings, key: string): number[] {
  const value = config.get(key);
  const list = Array.isArray(value) ? value : [value];
  const isFine = (item: unknown) =>
    typeof item === "number" && Number.isFinite(item) && (key === "image_mean" || item > 0);
  if ((list.length === 1 || list.length === 3) && list.every(isFine)) return list;
  throw config.wrong(key, "a list of three numbers", value);
}
