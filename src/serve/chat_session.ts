/** A chat with a model: its messages and the next answer. */
import { ArgumentError } from "../core/errors.ts";
import { definedOf } from "../core/records.ts";
import type { CacheFormat } from "../nn/cache/store.ts";
import { Batcher } from "../nn/generation/batcher.ts";
import type { BatchOptions } from "../nn/generation/options.ts";
import { StopFinder } from "../nn/generation/stop.ts";
import type { ImagePrompt } from "../nn/models/vision_language/images.ts";
import type { ChatMessage } from "../text/chat_template.ts";
import { type ServedModel, stopTokensOf } from "./served_model.ts";

export type ChatOptions = Omit<BatchOptions, "stopTokens" | "signal" | "logProbabilities"> & {
  /** The system message. */
  readonly system?: string | undefined;
  /** Format of cached keys and values. */
  readonly cache?: CacheFormat | undefined;
};

/** The speed of an answer. */
export interface Pace {
  readonly tokens: number;
  /** Measured from the first token, which excludes the time to process the prompt. */
  readonly tokensPerSecond: number;
}

export class ChatSession implements Disposable {
  private readonly batcher: Batcher;
  private said: ChatMessage[] = [];
  /** Images of the next message. */
  private images: string[] = [];
  pace: Pace = { tokens: 0, tokensPerSecond: 0 };

  constructor(
    private readonly served: ServedModel,
    private readonly options: ChatOptions = {},
  ) {
    this.batcher = new Batcher(served.model, { slots: 1, cache: options.cache });
    this.reset();
  }

  get messages(): readonly ChatMessage[] {
    return this.said;
  }

  /** Clears all messages except the system message. */
  reset(): void {
    const { system } = this.options;
    this.said = system === undefined ? [] : [{ role: "system", content: system }];
  }

  /** Adds the file of an image to the next message. @throws {ArgumentError} `noImages` if the model reads only text. */
  attach(path: string): void {
    if (!this.served.processor)
      throw new ArgumentError(
        "chat",
        "noImages",
        `expected a vision-language model with a chat template for the image ${path}, got ${this.served.name}`,
      );
    this.images.push(path);
  }

  /**
   * Generates the answer to a message in pieces. If the caller stops reading, the pieces read so far become the answer.
   *
   * @throws {ArgumentError} if the chat exceeds the model's context. The message is then not added.
   */
  async *say(content: string, signal?: AbortSignal): AsyncGenerator<string, void, undefined> {
    const { tokenizer } = this.served;
    const { images } = this;
    const parts = [...images.map((image) => ({ type: "image", image })), { type: "text", text: content }];
    const messages = [...this.said, { role: "user", content: images.length > 0 ? parts : content }];
    const { system: _, cache: __, ...options } = this.options;
    const prompt = await this.promptOf(messages);
    this.images = [];
    const stream = this.batcher.submit(prompt, {
      ...defined(this.served.defaults ?? {}),
      ...defined(options),
      stopTokens: stopTokensOf(this.served),
    });
    const stop = () => stream.cancel();
    signal?.addEventListener("abort", stop);
    const [decoder, finder] = [tokenizer.decoder({ isStart: true }), new StopFinder(this.stops)];
    let [answer, count, first, last] = ["", 0, 0, 0];
    try {
      for await (const { token } of stream) {
        last = performance.now();
        if (count++ === 0) first = last;
        const { text, found } = finder.push(decoder.push(token));
        answer += text;
        if (text !== "") yield text;
        if (found) break;
      }
      const tail = finder.push(decoder.end()).text + finder.end();
      answer += tail;
      if (tail !== "") yield tail;
    } finally {
      stream.cancel();
      signal?.removeEventListener("abort", stop);
      this.said = [...messages, { role: "assistant", content: answer }];
      this.pace = { tokens: count, tokensPerSecond: count > 1 ? ((count - 1) * 1000) / (last - first) : 0 };
    }
  }

  private promptOf(messages: readonly ChatMessage[]): Promise<ImagePrompt> | number[] {
    const { processor, tokenizer } = this.served;
    if (processor) return processor.prompt(messages);
    return [...tokenizer.encode(this.textOf(messages), { addSpecialTokens: false })];
  }

  /** Without a template, the chat is written as a dialog, and the answer ends before the next speaker. */
  private textOf(messages: readonly ChatMessage[]): string {
    if (this.served.template) return this.served.template.render(messages);
    return `${messages.map(({ role, content }) => `${role}: ${content}\n`).join("")}assistant:`;
  }

  private get stops(): readonly string[] {
    return this.served.template ? [] : ["\nuser:"];
  }

  [Symbol.dispose](): void {
    this.batcher.dispose();
  }
}

const defined = <T extends object>(options: T): Partial<T> => definedOf(options);
