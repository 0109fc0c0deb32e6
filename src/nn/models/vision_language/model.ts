import { ArgumentError } from "../../../core/errors.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { rotationOf } from "../../../ops/position/frequencies.ts";
import type { RopeScaling } from "../../../ops/position/rope.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { KeyValueCacheBatch } from "../../cache/batch.ts";
import type { LayerOptions } from "../../layers/initialization.ts";
import type { AttentionInputs } from "../decoder/attention.ts";
import { Decoder } from "../decoder/decoder.ts";
import type { LanguageModelInputs } from "../language_model.ts";
import { moduleNames } from "../loading/vision_language/names.ts";
import type { VisionLanguageDescription } from "./description.ts";
import { EncoderTower } from "./encoder_tower.ts";
import { tablesOf } from "./grid.ts";
import {
  type ImageInputs,
  type ImagePrompt,
  type PlacedImages,
  PlacedPrompt,
  type Placement,
  placesOf,
} from "./images.ts";
import { PatchTower } from "./patch_tower.ts";

/**
 * A language model that reads images, as `loadModel` returns. It is a {@link Decoder} with a tower that converts
 * images to features, which replace the embeddings of image tokens. {@link ChatProcessor} makes prompts.
 *
 * | parameter | shape |
 * |---|---|
 * | `tower. …` | see {@link PatchTower} and {@link EncoderTower} |
 * | others | see {@link Decoder} |
 *
 * @example
 * const { model } = await nn.loadModel<nn.VisionLanguageModel>("qwen2.5-vl-3b");
 * const processor = nn.loadChatProcessor("qwen2.5-vl-3b");
 * const content = [{ type: "image", image: "cat.png" }, { type: "text", text: "Describe it." }];
 * const prompt = await processor.prompt([{ role: "user", content }]);
 * for await (const piece of nn.generateText(model, processor.tokenizer, prompt)) process.stdout.write(piece);
 */
export class VisionLanguageModel extends Decoder {
  readonly tower: PatchTower | EncoderTower;
  readonly #description: VisionLanguageDescription;

  constructor(description: VisionLanguageDescription, options: LayerOptions = {}) {
    super(description.text, options);
    this.#description = description;
    const { tower } = description;
    this.tower = tower.kind === "patches" ? new PatchTower(tower, options) : new EncoderTower(tower, options);
  }

  /** The description of the image part; `description` describes the language model. */
  get vision(): VisionLanguageDescription {
    return this.#description;
  }

  /**
   * Computes the features of images.
   *
   * @returns [image tokens, width], in the order of the images; with `deep` of the tower, [image tokens, levels ·
   * width]
   */
  imageFeatures(images: readonly ImageInputs[]): Tensor {
    return this.tower.forward(images);
  }

  /** @internal Returns the names of layers in the modules of `transformers`, by their paths. */
  override huggingFaceNames(): Map<string, string> {
    return moduleNames(this.#description);
  }

  /** @internal @throws {ArgumentError} `otherForm`: the names of the tower's weights are not written. */
  override huggingFaceMappings(): never {
    throw new ArgumentError(
      "huggingFaceState",
      "otherForm",
      `expected a language model without a vision part, got ${this.#description.architecture}; use stateDict()`,
    );
  }

  private get placement(): Placement {
    const { imageToken, tower, bidirectional } = this.#description;
    const merge = tower.kind === "patches" && this.axes ? tower.merge : undefined;
    return { imageToken, merge, whole: bidirectional };
  }

  private get axes(): readonly number[] | undefined {
    return this.#description.text.layers[0].attention.rope?.axes;
  }

  /** @internal @throws {ArgumentError} `imagesDiffer`, `invalidImages` */
  protected override placeImages(
    tokens: Tensor,
    images: readonly ImageInputs[],
    { cache, padding, segments }: LanguageModelInputs,
  ): PlacedImages {
    const name = this.constructor.name;
    if (segments || (this.#description.bidirectional && cache instanceof KeyValueCacheBatch))
      throw new ArgumentError(
        name,
        "invalidImages",
        `images cannot be combined with ${segments ? "segments" : "a batch of caches in this architecture"}`,
      );
    const [batch, count] = tupleOf(tokens.shape, 2);
    const ids = Array.from(tokens.dataSync(), Number);
    const rows = Array.from({ length: batch }, (_, row) => {
      const before = padding?.[row] ?? 0;
      const start = Math.max(0, (cache?.positionIn(row) ?? 0) - before);
      const isFirst = (cache?.position ?? 0) === 0;
      return { tokens: ids.slice(row * count, (row + 1) * count), start, padding: isFirst ? before : 0 };
    });
    const places = placesOf(name, rows, images, this.placement);
    return { ...places, features: images.length > 0 ? this.imageFeatures(images) : undefined };
  }

  /** @internal */
  override placedPrompt(operation: string, prompt: ImagePrompt): PlacedPrompt {
    return new PlacedPrompt(prompt, this.placement, operation, (images) => this.imageFeatures(images));
  }

  /** @internal */
  protected override placedInputs(
    placed: PlacedImages,
    position: number,
    mask?: Tensor<"bool">,
  ): Partial<AttentionInputs> {
    const { bidirectional } = this.#description;
    return {
      ...(this.axes && { rotation: this.rotation(placed, this.axes) }),
      ...(bidirectional && placed.features && { mask: blockMask(placed, position, mask), isExact: true }),
    };
  }

  private rotation({ positions, shape }: PlacedImages, axes: readonly number[]): ReturnType<typeof tablesOf> {
    const { rope, headWidth } = this.#description.text.layers[0].attention;
    const { frequencies, magnitude } = rotationOf(
      rope!.dim ?? headWidth,
      rope!.base,
      rope!.scaling as RopeScaling | undefined,
    );
    return tablesOf(positions, axes, frequencies, magnitude, [shape[0]]);
  }
}

/**
 * Returns which keys tokens attend to: all before them, and all of the same image. bool [batch, 1, tokens, keys]
 *
 * @param position the number of cached tokens
 * @param mask which keys are not padding, [batch, 1, 1, keys]
 */
function blockMask(
  { images, shape: [batch, count] }: PlacedImages,
  position: number,
  mask: Tensor<"bool"> | undefined,
): Tensor<"bool"> {
  const keys = position + count;
  const attends = new Uint8Array(batch * count * keys);
  const isToken = mask?.dataSync();
  for (let row = 0; row < batch; row++)
    for (let query = 0; query < count; query++) {
      const image = images[row * count + query];
      for (let key = 0; key < keys; key++) {
        const isSame = key >= position && image >= 0 && images[row * count + key - position] === image;
        const isSeen = key <= position + query || isSame;
        if (isSeen && (isToken === undefined || Boolean(isToken[row * keys + key])))
          attends[(row * count + query) * keys + key] = 1;
      }
    }
  return tensor(attends, { shape: [batch, 1, count, keys], dtype: "bool" });
}
