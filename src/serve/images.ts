/** The images of a request's messages. */
import { ArgumentError, OrchardError } from "../core/errors.ts";
import type { ImagePrompt } from "../nn/models/vision_language/images.ts";
import type { ContentPart } from "../nn/models/vision_language/messages.ts";
import { bytesOfUrl } from "../nn/models/vision_language/read_image.ts";
import type { ChatMessage } from "../text/chat_template.ts";
import { ApiError } from "./api_error.ts";
import type { Limits } from "./limits.ts";

/** A part of a message in a request. */
export type RequestPart =
  | Extract<ContentPart, { readonly type: "text" }>
  | { readonly type: "image_url"; readonly url: string };

/** Reads the images of messages. @throws {ApiError} 400 for an image that can't be read. */
export const withImages = (
  messages: readonly ChatMessage[],
  limits: Limits,
  signal: AbortSignal,
): Promise<ChatMessage[]> =>
  Promise.all(
    messages.map(async (message) => {
      if (!Array.isArray(message.content)) return message;
      const parts = message.content.map(
        async (part): Promise<ContentPart> =>
          part.type === "text" ? part : { type: "image", image: await bytesOf(part.url, limits, signal) },
      );
      return { ...message, content: await Promise.all(parts) };
    }),
  );

async function bytesOf(url: string, limits: Limits, signal: AbortSignal): Promise<Uint8Array> {
  if (!/^https?:/i.test(url)) {
    try {
      return bytesOfUrl("chat", url);
    } catch (error) {
      if (error instanceof ArgumentError) throw invalid("expected image_url to be a base64 data: URL, got another URL");
      throw error;
    }
  }
  if (limits.imageUrls) return download(url, limits, signal);
  throw new ApiError(
    400,
    "expected image_url to be a base64 data: URL: this server does not download images",
    "image_url_not_allowed",
    "messages",
  );
}

const invalid = (message: string): ApiError => new ApiError(400, message, "invalid_image", "messages");

/** Downloads an image without following redirects, which could lead to other hosts. */
async function download(url: string, { bodyBytes, bodySeconds }: Limits, signal: AbortSignal): Promise<Uint8Array> {
  const failed = (reason: string) => invalid(`expected an image at ${url.slice(0, 200)}, got ${reason}`);
  const until = AbortSignal.any([signal, AbortSignal.timeout(bodySeconds * 1000)]);
  try {
    const response = await fetch(url, { redirect: "error", signal: until });
    if (!response.ok) throw failed(`status ${response.status}`);
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of response.body ?? []) {
      size += part.byteLength;
      if (size > bodyBytes) throw failed(`more than ${bodyBytes} bytes`);
      parts.push(part);
    }
    return Buffer.concat(parts);
  } catch (error) {
    throw error instanceof ApiError ? error : failed(error instanceof Error ? error.message : "an error");
  }
}

/** Makes a prompt. @throws {ApiError} 400 for an image that can't be decoded. */
export async function reportingImages(make: () => Promise<ImagePrompt>): Promise<ImagePrompt> {
  try {
    return await make();
  } catch (error) {
    const isOfImage = error instanceof OrchardError && /^File(Format)?Error$/.test(error.name);
    throw isOfImage
      ? invalid("expected PNG, JPEG, WebP, GIF, TIFF or AVIF images, got another or a damaged file")
      : error;
  }
}
