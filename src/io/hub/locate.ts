/** Finds a model by its path or its name on a hub: in the cache of Hugging Face's tools, else by a download. */
import { existsSync } from "node:fs";
import { orchardCommand } from "../../core/commands.ts";
import { FileError } from "../../core/errors.ts";
import { cachedModel } from "./cache.ts";
import { DownloadError } from "./errors.ts";
import { downloadLine } from "./progress.ts";
import { type PullOptions, pull } from "./pull.ts";
import { parseReference, type Reference } from "./reference.ts";
import { type HubSettings, hubSettings } from "./settings.ts";

/** The retry settings of downloads that start implicitly. */
export const usualPatience = { stallMilliseconds: 30_000, attempts: 5, waitMilliseconds: 1000 } as const;

/** Options of {@link locateModel}. */
export interface LocateOptions {
  /** Whether to use only the cache. Default: as `HF_HUB_OFFLINE` says. */
  readonly offline?: boolean | undefined;
  /** The hub's settings. Default: those of the environment. */
  readonly settings?: HubSettings;
  /** Timeouts and retries. Default: {@link usualPatience}. */
  readonly patience?: Pick<PullOptions, "stallMilliseconds" | "attempts" | "waitMilliseconds">;
}

/**
 * Returns the path of a model. A path that exists is returned unchanged. Otherwise `owner/name`, `owner/name@revision`
 * or `owner/name:Q4_K_M` is found in the cache, or downloaded.
 *
 * @param operation for errors
 * @throws {FileError} `notFound` for a text that can only be a path, and for a model that is not in the cache when
 * offline. @throws {DownloadError} @throws {ArgumentError} as `pull`.
 */
export async function locateModel(operation: string, given: string, options: LocateOptions = {}): Promise<string> {
  if (existsSync(given)) return given;
  const reference = parseReference(given);
  if (reference === undefined) throw notFound(operation, given);
  const settings = options.settings ?? hubSettings();
  const cached = cachedModel(settings.cache, reference);
  if (cached?.isComplete) return cached.path;
  if (options.offline ?? settings.isOffline) {
    if (cached) return cached.path;
    throw notCached(operation, given, settings.cache, "downloads are off: --offline or HF_HUB_OFFLINE is set");
  }
  try {
    return await pulled(reference, settings, options);
  } catch (cause) {
    // If the hub can't be reached, an incomplete model is returned: programs that need no tokenizer can use it.
    if (cached && cause instanceof DownloadError) return cached.path;
    throw cause instanceof DownloadError ? described(cause, given, reference, settings) : cause;
  }
}

/**
 * Finds a model as {@link locateModel} does, without downloads. A path that does not name a model in the cache is
 * returned unchanged, so that opening it reports the error.
 */
export function locateCached(operation: string, given: string): string {
  const reference = existsSync(given) ? undefined : parseReference(given);
  if (reference === undefined) return given;
  const { cache } = hubSettings();
  const cached = cachedModel(cache, reference);
  if (cached) return cached.path;
  throw notCached(operation, given, cache, "this call does not download");
}

async function pulled(reference: Reference, settings: HubSettings, { patience }: LocateOptions): Promise<string> {
  const { name, revision, quantization } = reference;
  const line = downloadLine("none");
  try {
    const { path } = await pull(name, {
      ...settings,
      ...usualPatience,
      ...patience,
      revision,
      quantization,
      include: undefined,
      signal: undefined,
      onProgress: line.show,
    });
    return path;
  } finally {
    line.end();
  }
}

const notFound = (operation: string, given: string): FileError =>
  new FileError(
    operation,
    "notFound",
    given,
    "no such file or folder; expected a model folder, a .gguf file, or the name of a model on a hub as owner/name",
  );

const notCached = (operation: string, given: string, cache: string, reason: string): FileError =>
  new FileError(
    operation,
    "notFound",
    given,
    `no such file or folder, and no complete model of this name in ${cache}; ${reason}. ` +
      `To download it: ${pullCommand(parseReference(given)!)}`,
  );

const pullCommand = ({ name, revision, quantization }: Reference): string =>
  orchardCommand(`pull ${name}${revision === "main" ? "" : `@${revision}`}${quantization ? `:${quantization}` : ""}`);

/** Adds the places that were tried before to the error of a download. */
const described = (cause: DownloadError, given: string, reference: Reference, { cache }: HubSettings): DownloadError =>
  new DownloadError(
    cause.code,
    cause.url,
    `${cause.message.slice(`[pull] ${cause.url}: `.length)}. Tried the path ${given}, the cache ${cache} and this ` +
      `hub; to try again: ${pullCommand(reference)}`,
    { cause },
  );
