/** Reads the bytes of a request's body, within limits of size and time. */
import { ApiError } from "./api_error.ts";

const tooLarge = (most: number): ApiError =>
  new ApiError(413, `expected a body of at most ${most} bytes`, "body_too_large", null, { Connection: "close" });

const incomplete = (): ApiError =>
  new ApiError(400, "expected a complete body, got an interrupted one", "invalid_body", null, { Connection: "close" });

/**
 * Reads the bytes of a request.
 *
 * @param connection calls `sentAll` once nothing more can arrive, if the client ends its sending side
 * @throws {ApiError} 400 for an interrupted body, 408, 413
 */
export async function readBytes(
  request: Request,
  most: number,
  seconds: number,
  connection?: { sentAll: (() => void) | undefined },
): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(request.headers.get("content-length") ?? 0) > most) throw tooLarge(most);
  const parts: Uint8Array[] = [];
  let size = 0;
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => undefined);
  const message = `expected the body within ${seconds} seconds`;
  const timer = setTimeout(() => late.reject(new ApiError(408, message, "timeout")), seconds * 1000);
  if (connection) connection.sentAll = () => late.reject(incomplete());
  const reader = request.body?.getReader();
  try {
    for (;;) {
      const part = await Promise.race([reader?.read(), late.promise]);
      if (!part || part.done) break;
      size += part.value.byteLength;
      if (size > most) throw tooLarge(most);
      parts.push(part.value);
    }
  } catch (error) {
    reader?.cancel().catch(() => undefined);
    throw error instanceof ApiError ? error : incomplete();
  } finally {
    clearTimeout(timer);
    if (connection) connection.sentAll = undefined;
  }
  const bytes = new Uint8Array(size); // not Buffer.concat, whose memory other buffers share
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}
