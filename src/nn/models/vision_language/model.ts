import { ArgumentError } from "../../../core/errors.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { rotationOf } from "../../../ops/position/frequencies.ts";
import type { RopeScaling } from "../../../ops/position/rope.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { KeyValueCacheBatch } from "../../cache/batch.ts";
import type { LayerOptions } from "../../layers/initialization.ts";
import type { AttentionInputs } from "../decoder/attention.ts";
import { Decoder } from "../decoder/decoder.ts";
import type { LanguageModelInputs } from "../language_model.ts";
import type { VisionLanguageDescription } from "./description.ts";
import { tablesOf } from "./grid.ts";
import { PatchTower } from "./patch_tower.ts";
import {
  type PictureInputs,
  type PicturePrompt,
  type PlacedPictures,
  PlacedPrompt,
  type Placement,
  placesOf,
} from "./pictures.ts";

/**
 * A language model that reads pictures, as `loadModel` returns. It is a {@link Decoder} with a tower that converts
 * pictures to features, which replace the embeddings of picture tokens. {@link ChatProcessor} makes prompts.
 *
 * | parameter | shape |
 * |---|---|
 * | `tower. …` | see {@link PatchTower} |
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
  readonly tower: PatchTower;
  readonly #description: VisionLanguageDescription;

  constructor(description: VisionLanguageDescription, options: LayerOptions = {}) {
    super(description.text, options);
    this.#description = description;
    this.tower = new PatchTower(description.tower, options);
  }

  /** The description of the pictures' part; `description` is that of the language model. */
  get vision(): VisionLanguageDescription {
    return this.#description;
  }

  /**
   * Computes the features of pictures.
   *
   * @returns [picture tokens, width], in the order of the pictures
   */
  pictureFeatures(pictures: readonly PictureInputs[]): Tensor {
    return this.tower.forward(pictures);
  }

  private get placement(): Placement {
    const { pictureToken, tower } = this.#description;
    return { pictureToken, merge: this.axes ? tower.merge : undefined };
  }

  private get axes(): readonly number[] | undefined {
    return this.#description.text.layers[0]!.attention.rope?.axes;
  }

  /** @internal @throws {ArgumentError} `picturesDiffer`, `invalidPictures` */
  protected override placePictures(
    tokens: Tensor,
    pictures: readonly PictureInputs[],
    { cache, padding, segments }: LanguageModelInputs,
  ): PlacedPictures {
    const name = this.constructor.name;
    if (segments || (this.#description.bidirectional && cache instanceof KeyValueCacheBatch))
      throw new ArgumentError(
        name,
        "invalidPictures",
        `pictures cannot be combined with ${segments ? "segments" : "a batch of caches in this architecture"}`,
      );
    const [batch, count] = tokens.shape as readonly [number, number];
    const ids = Array.from(tokens.dataSync(), Number);
    const rows = Array.from({ length: batch }, (_, row) => {
      const before = padding?.[row] ?? 0;
      const start = Math.max(0, (cache?.positionIn(row) ?? 0) - before);
      const isFirst = (cache?.position ?? 0) === 0;
      return { tokens: ids.slice(row * count, (row + 1) * count), start, padding: isFirst ? before : 0 };
    });
    const places = placesOf(name, rows, pictures, this.placement);
    return { ...places, features: pictures.length > 0 ? this.pictureFeatures(pictures) : undefined };
  }

  /** @internal */
  override placedPrompt(operation: string, prompt: PicturePrompt): PlacedPrompt {
    return new PlacedPrompt(prompt, this.placement, operation, (pictures) => this.pictureFeatures(pictures));
  }

  /** @internal */
  protected override placedInputs(
    placed: PlacedPictures,
    position: number,
    mask?: Tensor<"bool">,
  ): Partial<AttentionInputs> {
    const { bidirectional } = this.#description;
    return {
      ...(this.axes && { rotation: this.rotation(placed, this.axes) }),
      ...(bidirectional && placed.features && { mask: blockMask(placed, position, mask), isExact: true }),
    };
  }

  private rotation({ positions, shape }: PlacedPictures, axes: readonly number[]): ReturnType<typeof tablesOf> {
    const { rope, headWidth } = this.#description.text.layers[0]!.attention;
    const { frequencies, magnitude } = rotationOf(
      rope!.dim ?? headWidth,
      rope!.base,
      rope!.scaling as RopeScaling | undefined,
    );
    return tablesOf(positions, axes, frequencies, magnitude, [shape[0]]);
  }
}

/**
 * Returns which keys tokens attend to: all before them, and all of the same picture. bool [batch, 1, tokens, keys]
 *
 * @param position the number of cached tokens
 * @param mask which keys are not padding, [batch, 1, 1, keys]
 */
function blockMask(
  { pictures, shape: [batch, count] }: PlacedPictures,
  position: number,
  mask: Tensor<"bool"> | undefined,
): Tensor<"bool"> {
  const keys = position + count;
  const attends = new Uint8Array(batch * count * keys);
  const isToken = mask?.dataSync() as ArrayLike<unknown> | undefined;
  for (let row = 0; row < batch; row++)
    for (let query = 0; query < count; query++) {
      const picture = pictures[row * count + query]!;
      for (let key = 0; key < keys; key++) {
        const isSame = key >= position && picture >= 0 && pictures[row * count + key - position] === picture;
        const isSeen = key <= position + query || isSame;
        if (isSeen && (isToken === undefined || Boolean(isToken[row * keys + key])))
          attends[(row * count + query) * keys + key] = 1;
      }
    }
  return tensor(attends, { shape: [batch, 1, count, keys], dtype: "bool" });
}
