/** Downloads a file from a hub: resumes interrupted downloads, and verifies checksums. */
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { fileError } from "../file_errors.ts";
import { DownloadError } from "./errors.ts";
import type { RemoteFile } from "./repository.ts";
import { type Connection, failureOf, request } from "./request.ts";
import { type RetryOptions, retried } from "./retry.ts";
import { type Asked, checkStatus } from "./status.ts";

/** Options of {@link download}. */
export interface DownloadOptions extends Connection, RetryOptions {
  /** The model, for errors. */
  readonly asked: Asked;
  readonly signal: AbortSignal | undefined;
  /** Called with the number of bytes of the file so far. */
  readonly onBytes: (bytes: number) => void;
}

/**
 * Downloads a file to a path. An earlier partial download in `path.incomplete` is resumed, and verified with the rest.
 * If the disk is full, the partial download is removed.
 *
 * @throws {DownloadError} @throws {FileError}
 */
export async function download(url: string, path: string, file: RemoteFile, options: DownloadOptions): Promise<void> {
  const partial = `${path}.incomplete`;
  try {
    const wasResumed = existsSync(partial) && statSync(partial).size > 0;
    await completed(url, partial, file, options);
    if (!(await isIntact(partial, file))) {
      rmSync(partial);
      // The partial download may have been damaged, so the file is downloaded again from the start.
      if (wasResumed) await completed(url, partial, file, options);
      if (!wasResumed || !(await isIntact(partial, file))) throw mismatch(url, partial);
    }
    renameSync(partial, path);
  } catch (cause) {
    // On a full disk the partial file would keep it full.
    if (isFull(cause)) rmSync(partial, { force: true });
    throw fileError("pull", partial, cause);
  }
}

const isFull = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && ["ENOSPC", "EDQUOT"].includes(String(cause.code));

function mismatch(url: string, partial: string): DownloadError {
  rmSync(partial, { force: true });
  return new DownloadError("checksumDiffers", url, "the file differs from its announced checksum, and was removed");
}

const completed = (url: string, partial: string, file: RemoteFile, options: DownloadOptions): Promise<void> =>
  retried(
    options,
    () => rest(url, partial, file, options),
    () => sizeOf(partial),
  );

const sizeOf = (path: string): number => (existsSync(path) ? statSync(path).size : 0);

/** Downloads the missing part of a file. */
async function rest(url: string, partial: string, file: RemoteFile, options: DownloadOptions): Promise<void> {
  if (sizeOf(partial) > file.size) rmSync(partial);
  const start = sizeOf(partial);
  options.onBytes(start);
  const { open } = await import("node:fs/promises");
  const handle = await open(partial, start > 0 ? "r+" : "w");
  try {
    if (start < file.size) await append(handle, url, start, file, options);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function append(
  handle: FileHandle,
  url: string,
  start: number,
  file: RemoteFile,
  options: DownloadOptions,
): Promise<void> {
  const headers: Record<string, string> = start > 0 ? { range: `bytes=${start}-` } : {};
  const { response, heard, end } = await request(options, url, headers);
  try {
    checkStatus(response, url, options.asked);
    let position = startOf(response, url, start, file);
    if (position < start) await handle.truncate(position);
    for await (const part of response.body ?? []) {
      heard();
      if (position + part.byteLength > file.size) {
        await handle.truncate(0);
        throw new DownloadError("tooLong", url, `expected ${file.size} bytes, got more`);
      }
      await handle.write(part, 0, part.byteLength, position);
      position += part.byteLength;
      options.onBytes(position);
    }
    if (position < file.size)
      throw new DownloadError("tooShort", url, `expected ${file.size} bytes, but the response ended after ${position}`);
  } catch (cause) {
    throw isOfSystem(cause) ? cause : failureOf(cause, undefined, options.signal, url);
  } finally {
    end();
  }
}

/** Whether an error comes from the disk, such as a full disk, and not from the network. */
const isOfSystem = (cause: unknown): boolean =>
  cause instanceof Error && "syscall" in cause && ["write", "ftruncate", "fsync"].includes(String(cause.syscall));

/** The position where the response begins: a server may send the whole file even if a part was requested. */
function startOf(response: Response, url: string, start: number, { size }: RemoteFile): number {
  const announced = response.headers.get("content-length");
  const begins = response.status === 206 ? start : 0;
  if (announced !== null && Number(announced) !== size - begins)
    throw new DownloadError("wrongSize", url, `expected ${size - begins} bytes, but the server announces ${announced}`);
  if (response.status !== 206) return 0;
  const range = response.headers.get("content-range");
  if (range === `bytes ${start}-${size - 1}/${size}`) return start;
  throw new DownloadError("wrongRange", url, `expected bytes from ${start} of ${size}, got ${range}`);
}

/** Whether a complete file has the announced checksum. */
async function isIntact(path: string, { hash, size }: RemoteFile): Promise<boolean> {
  const digest = new Bun.CryptoHasher(hash.kind === "sha256" ? "sha256" : "sha1");
  if (hash.kind === "git") digest.update(`blob ${size}\0`);
  for await (const part of Bun.file(path).stream()) digest.update(part);
  return digest.digest("hex") === hash.value;
}
