/** Reads the images of messages. */
import { ArgumentError } from "../../../core/errors.ts";
import { Tensor } from "../../../tensor/tensor.ts";
import type { ChatImage } from "./messages.ts";

/**
 * Returns an image [3, height, width].
 *
 * @throws {ArgumentError} `invalidImageUrl`. @throws {FileError} @throws {FileFormatError} as `io.loadImage`.
 */
export async function readImage(operation: string, image: ChatImage): Promise<Tensor> {
  if (Tensor.isTensor(image)) return image;
  const { loadImage } = await import("../../../io/image/load.ts");
  return loadImage(typeof image === "string" && isUrl(image) ? bytesOfUrl(operation, image) : image);
}

const isUrl = (text: string): boolean => /^(data:|[a-z][a-z0-9+.-]*:\/\/)/i.test(text);

/**
 * @internal Returns the bytes of a base64 `data:` URL. @throws {ArgumentError} `invalidImageUrl` for another URL.
 */
export function bytesOfUrl(operation: string, url: string): Uint8Array {
  const [, base64] = /^data:[a-z0-9.+/-]*;base64,([a-z0-9+/]+={0,2})$/i.exec(url) ?? [];
  if (base64 !== undefined) return Buffer.from(base64, "base64");
  throw new ArgumentError(
    operation,
    "invalidImageUrl",
    `expected the URL of an image to be data:image/…;base64,…, got ${JSON.stringify(url.slice(0, 40))}; ` +
      "download images of other URLs first",
  );
}
