import { ArgumentError } from "../../../core/errors.ts";
import { counted } from "../../../core/plural.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { ChatMessage, ChatTemplate, RenderOptions } from "../../../text/chat_template.ts";
import type { PretrainedTokenizer } from "../../../text/pretrained_tokenizer.ts";
import type { ImageInputs, ImagePrompt } from "./images.ts";
import { readsParts, separated } from "./messages.ts";
import { readImage } from "./read_image.ts";

/** @internal How a model's prompts represent images. */
export interface ImageLayout {
  /** The text of a chat template for an image. */
  readonly placeholder: string;
  /** Converts an image [3, height, width] to a tower's input, and returns the text that replaces the placeholder. */
  prepare(image: Tensor): { readonly inputs: ImageInputs; readonly text: string };
}

/**
 * Converts chats with images to prompts for a {@link VisionLanguageModel}: it renders the chat template, resizes and
 * normalizes the images, and inserts the tokens of each image. {@link loadChatProcessor} makes it from the files of a
 * model.
 *
 * @example
 * const processor = nn.loadChatProcessor("qwen2.5-vl-3b");
 * const content = [{ type: "image", image: "cat.png" }, { type: "text", text: "Describe it." }];
 * const prompt = await processor.prompt([{ role: "user", content }]);
 */
export class ChatProcessor {
  readonly tokenizer: PretrainedTokenizer;
  readonly template: ChatTemplate;
  readonly #layout: ImageLayout;

  /** @internal */
  constructor(tokenizer: PretrainedTokenizer, template: ChatTemplate, layout: ImageLayout) {
    this.tokenizer = tokenizer;
    this.template = template;
    this.#layout = layout;
  }

  /**
   * Converts a chat to a prompt. The content of a message is a text, or a list of {@link ContentPart}.
   *
   * @param options those of `ChatTemplate.render`
   *
   * @throws {ArgumentError} `unknownPart`, `invalidImageUrl`; `imagesDiffer` if the template does not write each image
   * once; `refused` for chats that the template rejects.
   * @throws {FileError} @throws {FileFormatError} as `io.loadImage`.
   */
  async prompt(messages: readonly ChatMessage[], options?: RenderOptions): Promise<ImagePrompt> {
    const { placeholder } = this.#layout;
    const operation = "ChatProcessor.prompt";
    const separate = this.#separated(operation, messages);
    const [first = "", ...others] = this.template.render(separate.messages, options).split(placeholder);
    if (others.length !== separate.images.length)
      throw new ArgumentError(
        operation,
        "imagesDiffer",
        `expected the chat to have ${placeholder} for ${counted(separate.images.length, "image")}, got ` +
          `${others.length}; texts must not contain it`,
      );
    let text = first;
    const images: ImageInputs[] = [];
    for (const [at, image] of separate.images.entries()) {
      const prepared = this.#layout.prepare(await readImage(operation, image));
      images.push(prepared.inputs);
      text += prepared.text + others[at];
    }
    return { tokens: [...this.tokenizer.encode(text, { addSpecialTokens: false })], images };
  }

  /**
   * Renders a chat as text, with a placeholder for each image.
   *
   * @throws {ArgumentError} `unknownPart`; `refused` for chats that the template rejects.
   */
  render(messages: readonly ChatMessage[], options?: RenderOptions): string {
    return this.template.render(this.#separated("ChatProcessor.render", messages).messages, options);
  }

  #separated(operation: string, messages: readonly ChatMessage[]): ReturnType<typeof separated> {
    const { placeholder } = this.#layout;
    return separated(operation, messages, { isList: readsParts(this.template.source), placeholder });
  }
}
