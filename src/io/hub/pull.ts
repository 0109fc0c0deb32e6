/**
 * Downloads a model into the cache that Hugging Face's tools share. `hub/models--owner--name` has `blobs`, named by
 * checksum, `snapshots/<commit>` with links to them, and `refs/<revision>` with a commit.
 */
import { existsSync, mkdirSync, rmSync, statfsSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { ArgumentError } from "../../core/errors.ts";
import { fileError } from "../file_errors.ts";
import { type DownloadOptions, download } from "./download.ts";
import { DownloadError } from "./errors.ts";
import { type RemoteFile, repositoryOf } from "./repository.ts";

/** Options of {@link pull}. */
export interface PullOptions extends Omit<DownloadOptions, "onBytes"> {
  /** The folder that contains `hub`. */
  readonly home: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
  /** Patterns of files, such as `*.gguf`. Default: the files needed to load a model. */
  readonly include: readonly string[] | undefined;
  /** Called as bytes arrive. */
  readonly onProgress: (progress: PullProgress) => void;
}

/** The progress of a download. */
export interface PullProgress {
  readonly file: string;
  readonly fileIndex: number;
  readonly fileCount: number;
  /** The bytes of all files so far. */
  readonly bytes: number;
  readonly totalBytes: number;
}

/** The files that a model is loaded from, without copies in other formats. */
const usual = ["*.safetensors", "*.safetensors.index.json", "*.json", "*.jinja", "*.model", "merges.txt", "vocab.txt"];

/** Downloads a model, and returns its folder. @throws {ArgumentError} @throws {DownloadError} @throws {FileError} */
export async function pull(name: string, options: PullOptions): Promise<string> {
  if (!/^[\w.-]+\/[\w.-]+$/.test(name) || name.split("/").some((part) => /^\.+$/.test(part)))
    throw new ArgumentError(
      "pull",
      "invalidName",
      `expected the name of a model as owner/name, got ${JSON.stringify(name)}`,
    );
  if (!/^[\w.-]+(\/[\w.-]+)*$/.test(options.revision) || options.revision.split("/").some((part) => /^\.+$/.test(part)))
    throw new ArgumentError(
      "pull",
      "invalidRevision",
      `expected a branch, tag or commit, got ${JSON.stringify(options.revision)}`,
    );
  const { commit, files } = await repositoryOf(options, name, options.revision);
  const wanted = files.filter(({ path }) => matches(path, options.include ?? usual));
  if (wanted.length === 0) throw nothingMatches(name, files, options);
  const folder = join(options.home, "hub", `models--${name.replace("/", "--")}`);
  const missing = wanted.filter(({ hash }) => !existsSync(join(folder, "blobs", hash.value)));
  const made = folders(folder, commit);
  checkSpace(folder, missing);
  const total = wanted.reduce((sum, { size }) => sum + size, 0);
  let before = 0;
  for (const [index, file] of wanted.entries()) {
    const report = (bytes: number) =>
      options.onProgress({
        file: file.path,
        fileIndex: index,
        fileCount: wanted.length,
        bytes: before + bytes,
        totalBytes: total,
      });
    const blob = join(made.blobs, file.hash.value);
    const path = file.path.split("/").map(encodeURIComponent).join("/");
    const url = `${options.endpoint}/${name}/resolve/${commit}/${path}`;
    if (!isThere(blob, file)) await download(url, blob, file, { ...options, onBytes: report });
    report(file.size);
    before += file.size;
    link(join(made.snapshot, file.path), blob);
  }
  writeRef(folder, options.revision, commit);
  return made.snapshot;
}

const matches = (path: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) => new Bun.Glob(pattern).match(path));

function nothingMatches(name: string, files: readonly RemoteFile[], { include }: PullOptions): ArgumentError {
  const some = files.slice(0, 20).map(({ path }) => path);
  const tried = include === undefined ? "safetensors, configs and tokenizers" : include.join(" ");
  return new ArgumentError(
    "pull",
    "noFiles",
    `${name} has no file matching ${tried}; it has ${some.join(", ") || "none"}${files.length > 20 ? ", …" : ""}; ` +
      "choose files with --include",
  );
}

/** Whether a blob is complete: it gets its name only after it was verified. */
const isThere = (blob: string, { size }: RemoteFile): boolean => existsSync(blob) && statSync(blob).size === size;

function folders(folder: string, commit: string): { readonly blobs: string; readonly snapshot: string } {
  const made = { blobs: join(folder, "blobs"), snapshot: join(folder, "snapshots", commit) };
  try {
    for (const path of Object.values(made)) mkdirSync(path, { recursive: true });
  } catch (cause) {
    throw fileError("pull", folder, cause);
  }
  return made;
}

/** Checks the free disk space before anything is downloaded. @throws {DownloadError} */
function checkSpace(folder: string, missing: readonly RemoteFile[]): void {
  const bytes = missing.reduce((sum, { size }) => sum + size, 0);
  const { bavail, bsize } = statfsSync(folder);
  if (bytes <= bavail * bsize) return;
  throw new DownloadError("diskFull", folder, `expected ${bytes} bytes of free space, got ${bavail * bsize}`);
}

/** Creates a relative link, so that the cache can be moved. */
function link(path: string, blob: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
    rmSync(path, { force: true });
    symlinkSync(relative(dirname(path), blob), path);
  } catch (cause) {
    throw fileError("pull", path, cause);
  }
}

function writeRef(folder: string, revision: string, commit: string): void {
  if (revision === commit) return;
  const path = join(folder, "refs", revision);
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, commit);
  } catch (cause) {
    throw fileError("pull", path, cause);
  }
}
