/** Messages of chats with images. */
import { describeValue } from "../../../core/describe.ts";
import { ArgumentError } from "../../../core/errors.ts";
import { isArray } from "../../../core/kinds.ts";
import { Tensor } from "../../../tensor/tensor.ts";
import type { ChatMessage } from "../../../text/chat_template.ts";

/**
 * An image in a message: a path, a `data:` URL, the bytes of a file, or a tensor [channels, height, width] of bytes or
 * of floats from 0 to 1.
 */
export type ChatImage = string | Uint8Array | Tensor;

/** A part of a message. `image_url` is the form of OpenAI's API. */
export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly image: ChatImage }
  | { readonly type: "image_url"; readonly image_url: string | { readonly url: string } };

/** How a chat template reads the content of messages. */
export interface ContentForm {
  /** Whether the template iterates over parts. Otherwise content is text with placeholders for images. */
  readonly isList: boolean;
  readonly placeholder: string;
}

/** Whether a chat template iterates over the parts of a message. */
export const readsParts = (template: string): boolean =>
  /for\s+\w+\s+in\s+\(?\s*\w+(\.content|\[\s*['"]content['"]\s*\])|for\s+\w+\s+in\s+content\b/.test(template);

/**
 * Returns messages in the form that a template reads, and their images in order.
 *
 * @throws {ArgumentError} `wrongType`; `unknownPart` for a part that is neither text nor an image.
 */
export function separated(
  operation: string,
  messages: readonly ChatMessage[],
  form: ContentForm,
): { readonly messages: ChatMessage[]; readonly images: ChatImage[] } {
  if (!isArray(messages))
    throw new ArgumentError(operation, "wrongType", `expected a list of messages, got ${describeValue(messages)}`);
  const images: ChatImage[] = [];
  const written = messages.map((message): ChatMessage => {
    const { content } = message;
    if (typeof content === "string") return form.isList ? { ...message, content: [textPart(content)] } : message;
    if (!isArray(content)) return message;
    const parts = content.map((part) => partOf(operation, part));
    for (const part of parts) if (part.type === "image") images.push(part.image);
    return {
      ...message,
      content: form.isList ? parts.map(withoutImage) : parts.map((part) => textOf(part, form)).join(""),
    };
  });
  return { messages: written, images };
}

type Part = Extract<ContentPart, { readonly type: "text" | "image" }>;

const textPart = (text: string): Part => ({ type: "text", text });

/** Templates need no pixels. */
const withoutImage = (part: Part): object => (part.type === "image" ? { type: "image" } : part);

const textOf = (part: Part, { placeholder }: ContentForm): string => (part.type === "image" ? placeholder : part.text);

function partOf(operation: string, part: unknown): Part {
  const { type, text, image, image_url } = (typeof part === "object" && part !== null ? part : {}) as Readonly<
    Record<string, unknown>
  >;
  if (type === "text" && typeof text === "string") return { type, text };
  if (type === "image" && isImage(image)) return { type, image };
  const url = typeof image_url === "string" ? image_url : (image_url as { readonly url?: unknown } | undefined)?.url;
  if (type === "image_url" && typeof url === "string") return { type: "image", image: url };
  const got = type === undefined ? describeValue(part) : `type ${describeValue(type)}`;
  throw new ArgumentError(
    operation,
    "unknownPart",
    'expected parts of a message to be { type: "text", text }, { type: "image", image } or ' +
      `{ type: "image_url", image_url }, got ${got}`,
  );
}

const isImage = (value: unknown): value is ChatImage =>
  typeof value === "string" || value instanceof Uint8Array || Tensor.isTensor(value);
