/** Downloads a model into the cache that Hugging Face's tools share, whose layout cache.ts describes. */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { ArgumentError } from "../../core/errors.ts";
import { removeIfPossible } from "../atomic.ts";
import { fileError, withFileErrors } from "../file_errors.ts";
import type { Json } from "../json.ts";
import { parseJson } from "../json.ts";
import { lockBlob } from "./blob_lock.ts";
import { type DownloadOptions, download } from "./download.ts";
import { DownloadError } from "./errors.ts";
import { chooseGguf, ggufChoices, INDEX, MODULES, matches, neededFiles, WEIGHTS } from "./needed.ts";
import { checkReference, folderName } from "./reference.ts";
import { type RemoteFile, type Repository, repositoryOf } from "./repository.ts";
import { busy, retried } from "./retry.ts";

/** Options of {@link pull}. */
export interface PullOptions extends Omit<DownloadOptions, "onBytes" | "asked"> {
  /** The folder of the cache. */
  readonly cache: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
  /** Patterns of files, such as `*.gguf`. Default: the files needed to load a model. */
  readonly include: readonly string[] | undefined;
  /** The quantization to choose in a repository of GGUF files. */
  readonly quantization?: string | undefined;
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

/** A downloaded model. */
export interface Pulled {
  /** The folder of the files. */
  readonly folder: string;
  /** The path to load: the folder, or the first GGUF file if one was chosen. */
  readonly path: string;
}

/** A repository, and where its files go. */
interface Target extends Repository {
  readonly name: string;
  readonly folder: string;
  readonly snapshot: string;
}

/** Downloads a model. @throws {ArgumentError} @throws {DownloadError} @throws {FileError} */
export async function pull(name: string, options: PullOptions): Promise<Pulled> {
  checkReference(name, options.revision);
  const list = () => repositoryOf(options, name, options.revision);
  const listed = await retried(options, list, undefined, busy);
  const folder = join(options.cache, folderName(name));
  const target = { ...listed, name, folder, snapshot: join(folder, "snapshots", listed.commit) };
  makeFolders(target);
  const { paths, gguf } = await chosen(target, options);
  const files = paths.map((path) => listed.files.find((file) => file.path === path)!);
  if (files.length === 0) throw nothingMatches(name, listed.files, options);
  checkSpace(target, files);
  await fetchAll(target, files, options);
  writeRef(folder, options.revision, listed.commit);
  return { folder: target.snapshot, path: gguf === undefined ? target.snapshot : join(target.snapshot, gguf) };
}

/** Chooses the files. This downloads the files that list other required files. */
async function chosen(
  target: Target,
  options: PullOptions,
): Promise<{ readonly paths: readonly string[]; readonly gguf?: string }> {
  const { name, files } = target;
  const paths = files.map(({ path }) => path);
  if (options.include) return { paths: paths.filter((path) => matches(path, options.include!)) };
  const choices = ggufChoices(paths);
  const isFolder = paths.some((path) => path === INDEX || path === WEIGHTS);
  if (options.quantization !== undefined || (!isFolder && choices.length > 0)) {
    const choice = chooseGguf(name, choices, options.quantization);
    return { paths: choice.files, gguf: choice.files[0] };
  }
  const silent = { ...options, onProgress: () => undefined };
  const contents = async (path: string): Promise<Json | undefined> => {
    const file = files.find((other) => other.path === path);
    if (file === undefined) return undefined;
    await fetchAll(target, [file], silent);
    const text = withFileErrors("pull", path, () => readFileSync(join(target.snapshot, path), "utf8"));
    return parseJson(text, (_, message) => new DownloadError("invalidAnswer", path, `expected JSON: ${message}`));
  };
  const [index, modules] = [await contents(INDEX), await contents(MODULES)];
  return { paths: neededFiles(name, { paths, index, modules }) };
}

async function fetchAll(target: Target, files: readonly RemoteFile[], options: PullOptions): Promise<void> {
  const totalBytes = files.reduce((sum, { size }) => sum + size, 0);
  let before = 0;
  for (const [fileIndex, file] of files.entries()) {
    const report = (bytes: number) =>
      options.onProgress({
        file: file.path,
        fileIndex,
        fileCount: files.length,
        bytes: before + bytes,
        totalBytes,
      });
    const blob = join(target.folder, "blobs", file.hash.value);
    if (!isThere(blob, file)) await fetchOne(target, file, blob, { ...options, onBytes: report });
    report(file.size);
    before += file.size;
    link(join(target.snapshot, file.path), blob);
  }
}

async function fetchOne(
  { name, commit }: Target,
  file: RemoteFile,
  blob: string,
  options: Omit<DownloadOptions, "asked"> & Pick<PullOptions, "cache" | "revision">,
): Promise<void> {
  using _ = await lockBlob(options.cache, folderName(name), file.hash.value, options.signal);
  if (isThere(blob, file)) return; // another process has downloaded it in the meantime
  const path = file.path.split("/").map(encodeURIComponent).join("/");
  const url = `${options.endpoint}/${name}/resolve/${commit}/${path}`;
  const { endpoint, revision, token } = options;
  await download(url, blob, file, { ...options, asked: { endpoint, name, revision, hasToken: token !== undefined } });
}

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

const makeFolders = ({ folder, snapshot }: Target): void =>
  withFileErrors("pull", folder, () => {
    for (const path of [join(folder, "blobs"), snapshot]) mkdirSync(path, { recursive: true });
  });

/** Checks the free disk space before anything large is downloaded. @throws {DownloadError} */
function checkSpace({ folder }: Target, files: readonly RemoteFile[]): void {
  const missing = files.filter((file) => !isThere(join(folder, "blobs", file.hash.value), file));
  const bytes = missing.reduce((sum, { size }) => sum + size, 0);
  const { bavail, bsize } = statfsSync(folder);
  if (bytes <= bavail * bsize) return;
  throw new DownloadError("diskFull", folder, `expected ${bytes} bytes of free space, got ${bavail * bsize}`);
}

/** Creates a relative link, so that the cache can be moved. */
const link = (path: string, blob: string): void =>
  replace(path, (temporary) => symlinkSync(relative(dirname(path), blob), temporary));

function writeRef(folder: string, revision: string, commit: string): void {
  if (revision === commit) return;
  replace(join(folder, "refs", revision), (temporary) => writeFileSync(temporary, commit));
}

let counter = 0;

/** Makes a file under a temporary name and renames it, so that other processes never miss it. */
function replace(path: string, make: (temporary: string) => void): void {
  const temporary = `${path}.${process.pid}.${counter++}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    make(temporary);
    renameSync(temporary, path);
  } catch (cause) {
    removeIfPossible(temporary);
    throw fileError("pull", path, cause);
  }
}
