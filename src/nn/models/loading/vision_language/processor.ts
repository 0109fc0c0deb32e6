/** Makes the processor of a vision-language model from its files. */
import { join } from "node:path";
import { ArgumentError, FileError } from "../../../../core/errors.ts";
import { aPath } from "../../../../core/kinds.ts";
import { named, operand, parameters } from "../../../../core/parameters.ts";
import { openGgufFor } from "../../../../io/gguf/open.ts";
import { locateCached } from "../../../../io/hub/locate.ts";
import { ChatTemplate } from "../../../../text/chat_template.ts";
import { loadTokenizer } from "../../../../text/load_tokenizer.ts";
import type { PretrainedTokenizer } from "../../../../text/pretrained_tokenizer.ts";
import { readConfig } from "../../hugging_face/config.ts";
import { completedProcessor, describeProcessor, settingsIn } from "../../vision/processor/load_processor.ts";
import { ImageProcessor } from "../../vision/processor/processor.ts";
import { ChatProcessor, type ImageLayout } from "../../vision_language/chat_processor.ts";
import type { EncoderTowerDescription, VisionLanguageDescription } from "../../vision_language/description.ts";
import { canvasLayout, fixedLayout, patchLayout, tileLayout } from "../../vision_language/layouts.ts";
import { chatTemplateOf, chatTemplateOfGguf } from "../generation.ts";
import { describeGguf } from "../gguf.ts";
import { Settings } from "../settings.ts";
import { describeVisionLanguage, isVisionLanguage, visionLanguageFamilies } from "./describe.ts";
import { describeMmproj } from "./mmproj/describe.ts";
import { openMmproj } from "./mmproj/open.ts";
import { processorSettings } from "./mmproj/processor.ts";

const OPERATION = "loadChatProcessor";
const readPath = parameters(OPERATION, { path: operand(aPath), mmproj: named(aPath) });

/** Options of {@link loadChatProcessor}. */
export interface LoadChatProcessorOptions {
  /** The GGUF file of the image encoder, if `path` is the GGUF file of the language model. Default: none. */
  readonly mmproj?: string | undefined;
}

/**
 * Loads the processor of a vision-language model: the chat template, the tokenizer, and the settings of images in
 * `preprocessor_config.json` or `processor_config.json`.
 *
 * @param path a folder; or `owner/name` for a model that `orchard pull` or `nn.loadModel` downloaded; or a `.gguf`
 * file, with the option `mmproj`
 *
 * @example
 * const processor = nn.loadChatProcessor("qwen2.5-vl-3b");
 * const content = [{ type: "image", image: "cat.png" }, { type: "text", text: "Describe it." }];
 * const prompt = await processor.prompt([{ role: "user", content }]);
 *
 * @throws {FileError} for files that can't be read. @throws {FileFormatError} for damaged ones.
 * @throws {ArgumentError} `unknownArchitecture`, `noChatTemplate`, and other codes for unsupported settings, which the
 * error names.
 */
export function loadChatProcessor(path: string, options?: LoadChatProcessorOptions): ChatProcessor;
export function loadChatProcessor(...values: unknown[]): ChatProcessor {
  const { path: given, mmproj } = readPath(values);
  const path = locateCached(OPERATION, given);
  if (mmproj !== undefined) return ofTwoFiles(path, mmproj);
  const fields = new Map(Object.entries(readConfig(OPERATION, path)));
  const config = new Settings(join(path, "config.json"), fields, "", OPERATION);
  const name = config.textIfAny("model_type");
  if (!isVisionLanguage(name))
    throw config.refused(
      "unknownArchitecture",
      `expected model_type to be one of ${Object.keys(visionLanguageFamilies).join(", ")}, got ${JSON.stringify(name)}`,
    );
  const settings = settingsIn(OPERATION, path);
  if (!settings) throw new FileError(OPERATION, "notFound", path, "expected a folder with preprocessor_config.json");
  const template = chatTemplateIn(path);
  const description = describeVisionLanguage(name, config, () => true);
  const tokenizer = loadTokenizer(path);
  const layout = layoutOf(description, settings, config, tokenizer);
  return new ChatProcessor(tokenizer, new ChatTemplate(template, tokenizer.templateTokens), layout);
}

/** Creates the processor for a language model and its image encoder in two GGUF files. */
function ofTwoFiles(path: string, mmproj: string): ChatProcessor {
  using text = openGgufFor(OPERATION, path);
  using file = openMmproj(OPERATION, mmproj);
  const template = chatTemplateOfGguf(text);
  if (template === undefined)
    throw new ArgumentError(OPERATION, "noChatTemplate", `expected a chat template in ${path}, got none`);
  const description = describeMmproj(text, file, describeGguf(text).description);
  const tokenizer = loadTokenizer(path);
  const marks = ["<start_of_image>", "<end_of_image>"].map((mark) => tokenizer.idOf(mark));
  const config = new Settings(
    path,
    new Map([
      ["boi_token_index", marks[0]],
      ["eoi_token_index", marks[1]],
    ]),
  );
  const layout = layoutOf(description, processorSettings(file, OPERATION), config, tokenizer);
  return new ChatProcessor(tokenizer, new ChatTemplate(template, tokenizer.templateTokens), layout);
}

/** @internal Whether a folder has settings for images. */
export const hasImageSettings = (path: string): boolean => settingsIn(OPERATION, path) !== undefined;

function chatTemplateIn(path: string): string {
  const template = chatTemplateOf(path);
  if (template !== undefined) return template;
  throw new ArgumentError(OPERATION, "noChatTemplate", `expected a chat template in ${path}, got none`);
}

function layoutOf(
  { architecture, tower, imageToken }: VisionLanguageDescription,
  settings: Settings,
  config: Settings,
  tokenizer: PretrainedTokenizer,
): ImageLayout {
  const processor = new ImageProcessor(describeProcessor(settings));
  const { config: images } = completedProcessor(settings);
  const token = textOf(tokenizer, imageToken);
  if (tower.kind === "patches") {
    const [patch, frames, merge] = ["patch_size", "temporal_patch_size", "merge_size"].map((key) => images.whole(key));
    if (merge !== tower.merge || 3 * frames * patch ** 2 !== tower.patchWidth)
      throw images.refused(
        "otherProcessor",
        `expected patches of ${tower.patchWidth} values, ${tower.merge} x ${tower.merge} for a token, as config.json ` +
          `says, got ${patch} x ${patch} pixels in ${frames} frames, and merge_size ${merge}`,
      );
    return patchLayout(processor, { patch: patch, frames: frames, merge }, token);
  }
  checkImageSize(processor, tower, images);
  const count = tokensOf(tower);
  const tile = images.inner("max_image_size")?.whole("longest_edge");
  if (tile !== undefined) {
    const longest = images.flag("do_resize") ? images.inner("size")!.whole("longest_edge") : 0;
    return tileLayout(processor, { tile, longest, splits: images.flag("do_image_splitting"), count }, token);
  }
  if (architecture === "internvl")
    return canvasLayout(processor, { tile: tower.encoder.patches.image, counts: tileCountsOf(images), count }, token);
  if (architecture !== "gemma3") return fixedLayout(processor, count, token);
  const [begin, end] = ["boi_token_index", "eoi_token_index"].map((key, at) =>
    textOf(tokenizer, config.wholeIfAny(key) ?? 255_999 + at),
  );
  return fixedLayout(processor, count, token, { placeholder: begin, before: `\n\n${begin}`, after: `${end}\n\n` });
}

/** Returns the minimum and maximum number of tiles. InternVL's processor ignores the file's flag and splits images. */
function tileCountsOf(images: Settings): readonly [least: number, most: number] {
  const [least, most] = [images.wholeIfAny("min_patches") ?? 1, images.wholeIfAny("max_patches") ?? 1];
  if (least <= most && most <= 1024) return [least, most];
  throw images.wrong("max_patches", `a number from min_patches (${least}) to 1024`, most);
}

/** @throws {ArgumentError} `otherProcessor` unless images are resized to the encoder's size. */
function checkImageSize(processor: ImageProcessor, { encoder }: EncoderTowerDescription, images: Settings): void {
  const { image } = encoder.patches;
  const size = processor.sizeOf([image[0], image[1]]);
  const isFixed = processor.description.crop !== undefined || processor.description.size?.kind === "exact";
  if (isFixed && size[0] === image[0] && size[1] === image[1]) return;
  const got = isFixed ? size.join(" x ") : "others";
  throw images.refused(
    "otherProcessor",
    `expected images of ${image.join(" x ")} pixels, the size in config.json, got ${got}`,
  );
}

/** The number of tokens of an image, or of a tile. */
function tokensOf({ encoder, projector }: EncoderTowerDescription): number {
  const { image, size } = encoder.patches;
  const gathered = projector.gather?.size ?? 1;
  return Math.floor(image[0] / size[0] / gathered) * Math.floor(image[1] / size[1] / gathered);
}

function textOf(tokenizer: PretrainedTokenizer, token: number): string {
  const text = tokenizer.textOf(token);
  if (text !== undefined) return text;
  throw new ArgumentError(OPERATION, "otherTokenizer", `expected a tokenizer with the token ${token} for images`);
}
