/** One file from a hub: resumed where it broke off, and checked. */
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { fileError } from "../file_errors.ts";
import { DownloadError } from "./errors.ts";
import type { RemoteFile } from "./repository.ts";
import { type Connection, checkStatus, failureOf, request } from "./request.ts";

/** How a download goes on. */
export interface DownloadOptions extends Connection {
  /** How often a file is tried without a new byte in between. */
  readonly attempts: number;
  /** Before the second attempt; it doubles. */
  readonly waitMilliseconds: number;
  /** Called with the bytes of the file that are there. */
  readonly onBytes: (bytes: number) => void;
}

/** What another attempt may mend. */
const passing = new Set(["stalled", "brokenOff", "unavailable", "tooShort"]);

/**
 * Downloads a file to a path. What is there under `path.incomplete` from an earlier time is kept, and checked with the
 * rest.
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
      // what was there before may have been damaged: then the file is downloaded once more, from its start
      if (wasResumed) await completed(url, partial, file, options);
      if (!wasResumed || !(await isIntact(partial, file))) throw mismatch(url, partial);
    }
    renameSync(partial, path);
  } catch (cause) {
    throw fileError("pull", partial, cause);
  }
}

function mismatch(url: string, partial: string): DownloadError {
  rmSync(partial, { force: true });
  return new DownloadError("checksumDiffers", url, "what came has another checksum than was announced; it was removed");
}

async function completed(url: string, partial: string, file: RemoteFile, options: DownloadOptions): Promise<void> {
  const { attempts, waitMilliseconds, signal } = options;
  for (let failures = 0; ; ) {
    const before = sizeOf(partial);
    try {
      await rest(url, partial, file, options);
      return;
    } catch (cause) {
      signal?.throwIfAborted();
      failures = sizeOf(partial) > before ? 1 : failures + 1;
      if (!(cause instanceof DownloadError && passing.has(cause.code)) || failures >= attempts) throw cause;
      await wait(waitMilliseconds * 2 ** (failures - 1), undefined, { signal });
    }
  }
}

const sizeOf = (path: string): number => (existsSync(path) ? statSync(path).size : 0);

/** What is missing of a file. */
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
    checkStatus(response, url);
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
      throw new DownloadError("tooShort", url, `expected ${file.size} bytes, the answer ended after ${position}`);
  } catch (cause) {
    throw isOfSystem(cause) ? cause : failureOf(cause, undefined, options.signal, url);
  } finally {
    end();
  }
}

/** Errors of the disk, such as that it is full, are no failures of the network. */
const isOfSystem = (cause: unknown): boolean =>
  cause instanceof Error && "syscall" in cause && ["write", "ftruncate", "fsync"].includes(String(cause.syscall));

/** Where the answer begins: a server may send the whole file though a part was asked for. */
function startOf(response: Response, url: string, start: number, { size }: RemoteFile): number {
  const announced = response.headers.get("content-length");
  const begins = response.status === 206 ? start : 0;
  if (announced !== null && Number(announced) !== size - begins)
    throw new DownloadError("wrongSize", url, `expected ${size - begins} bytes, the server announces ${announced}`);
  if (response.status !== 206) return 0;
  const range = response.headers.get("content-range");
  if (range === `bytes ${start}-${size - 1}/${size}`) return start;
  throw new DownloadError("wrongRange", url, `expected bytes from ${start} of ${size}, got ${range}`);
}

/** Whether a complete file has the checksum that was announced. */
async function isIntact(path: string, { hash, size }: RemoteFile): Promise<boolean> {
  const digest = new Bun.CryptoHasher(hash.kind === "sha256" ? "sha256" : "sha1");
  if (hash.kind === "git") digest.update(`blob ${size}\0`);
  for await (const part of Bun.file(path).stream()) digest.update(part);
  return digest.digest("hex") === hash.value;
}
