/** Opens a language model and its image encoder, in two GGUF files. */
import { noGrad } from "../../../../../autograd/modes.ts";
import { ArgumentError } from "../../../../../core/errors.ts";
import type { GgufReader } from "../../../../../io/gguf/file.ts";
import { openGgufFor } from "../../../../../io/gguf/open.ts";
import { toDType } from "../../../../../ops/copy/cast.ts";
import { stack } from "../../../../../ops/join/cat.ts";
import { QuantizedTensor } from "../../../../../quant/quantized_tensor.ts";
import type { Tensor } from "../../../../../tensor/tensor.ts";
import { VisionLanguageModel } from "../../../vision_language/model.ts";
import { chatTemplateOfGguf, generationOfGguf } from "../../generation.ts";
import { describeGguf } from "../../gguf.ts";
import type { Opened } from "../../opened.ts";
import { ggufSource, type WeightSource } from "../../source.ts";
import { describeMmproj } from "./describe.ts";
import { mmprojPlaces } from "./names.ts";

/** Whether a file is an mmproj file: an image encoder for a language model in another file. */
export const isMmproj = ({ metadata }: GgufReader): boolean => metadata["general.architecture"]?.value === "clip";

/**
 * Opens an mmproj file for a language model.
 *
 * @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for unsupported settings.
 */
export function openMmproj(operation: string, path: string): GgufReader {
  const file = openGgufFor(operation, path);
  if (isMmproj(file)) return file;
  file.close();
  const got = JSON.stringify(file.metadata["general.architecture"]?.value);
  const message = `expected general.architecture to be "clip" in ${path}, got ${got}`;
  throw new ArgumentError(operation, "otherProjector", `${message}; pass the file of the image encoder`);
}

/** Combines two open files into one model, whose disposal closes both. */
export function openTwoFiles(text: GgufReader, file: GgufReader): Opened {
  const description = describeMmproj(text, file, describeGguf(text).description);
  const source = joined(ggufSource(text), towerSource(file));
  return {
    places: mmprojPlaces(description, file),
    source,
    style: "gguf",
    config: Object.fromEntries(Object.entries(text.metadata).map(([key, { value }]) => [key, value])),
    generation: generationOfGguf(text),
    chatTemplate: chatTemplateOfGguf(text),
    newModel: (options) => new VisionLanguageModel(description, options),
    [Symbol.dispose]: () => source[Symbol.dispose](),
  };
}

/** Returns a source of the tensors of two files. Their names must differ. */
function joined(first: WeightSource, second: WeightSource): WeightSource {
  const of = (name: string) => (second.has(name) ? second : first);
  return {
    path: first.path,
    names: [...first.names, ...second.names],
    has: (name) => first.has(name) || second.has(name),
    describe: (name) => of(name).describe(name),
    read: (name) => of(name).read(name),
    isNeutral: (name) => second.isNeutral?.(name) ?? false,
    [Symbol.dispose]() {
      first[Symbol.dispose]();
      second[Symbol.dispose]();
    },
  };
}

const PATCH = "v.patch_embd.weight";

/** Returns the file's weights. If llama.cpp has split the patch projection by frame, joins the two parts. */
function towerSource(file: GgufReader): WeightSource {
  const plain = ggufSource(file);
  const count = Number(file.metadata["clip.vision.block_count"]?.value);
  // some converters keep the blocks after the one that computes the features
  const isBlockAfter = (name: string) => Number(/^v\.blk\.(\d+)\./.exec(name)?.[1] ?? -1) >= count;
  const isSplit = (name: string) => name === PATCH && file.has(`${PATCH}.1`);
  return {
    ...plain,
    names: file.names.filter((name) => name !== `${PATCH}.1`),
    isNeutral: (name) => /^v\.(post_ln|head)\.|^model\.image_newline$/.test(name) || isBlockAfter(name),
    describe(name) {
      const stored = plain.describe(name);
      if (!isSplit(name)) return stored;
      const [outputs = 0, channels = 0, ...sides] = stored.shape;
      return {
        ...stored,
        shape: [outputs, channels, 2, ...sides],
        byteLength: 2 * stored.byteLength,
        isComputed: true,
      };
    },
    read(name) {
      if (!isSplit(name)) return plain.read(name);
      const parts = [PATCH, `${PATCH}.1`].map((part) => plain.read(part)).filter(isPlain);
      return noGrad(() =>
        stack(
          parts.map((part) => toDType(part, parts[0].dtype)),
          2,
        ),
      );
    },
  };
}

const isPlain = (value: Tensor | QuantizedTensor): value is Tensor => !QuantizedTensor.isQuantized(value);
