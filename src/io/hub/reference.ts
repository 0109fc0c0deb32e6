/** Names of models on a hub: `owner/name`, `owner/name@revision`, `owner/name:Q4_K_M`. */
import { ArgumentError } from "../../core/errors.ts";

/** A model on a hub. */
export interface Reference {
  /** `owner/name` */
  readonly name: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
  /** The quantization to choose in a repository of GGUF files, such as `Q4_K_M`. */
  readonly quantization: string | undefined;
}

/** The branch that is used if no other is named. */
export const MAIN = "main";

const isUsual = (part: string): boolean => /^[\w.-]+$/.test(part) && !/^\.+$/.test(part);

/** Whether a text is a valid `owner/name`. */
export const isRepositoryName = (text: string): boolean =>
  text.split("/").length === 2 && text.split("/").every(isUsual);

/** Whether a text is a valid branch, tag or commit. Each part becomes a folder of the cache. */
export const isRevision = (text: string): boolean => text.split("/").every(isUsual);

/**
 * Parses a reference. Returns undefined for a text that can only be a path.
 *
 * @example parseReference("owner/name@v1:Q4_K_M"); // { name: "owner/name", revision: "v1", quantization: "Q4_K_M" }
 */
export function parseReference(text: string): Reference | undefined {
  const [, name, revision = MAIN, quantization] = /^([^@:]+)(?:@([^:]+))?(?::([\w.-]+))?$/.exec(text) ?? [];
  if (name === undefined || !isRepositoryName(name) || !isRevision(revision)) return undefined;
  if (name.startsWith(".") || name.endsWith(".gguf")) return undefined;
  return { name, revision, quantization };
}

/** Checks a reference. @throws {ArgumentError} `invalidName` or `invalidRevision`, before any request. */
export function checkReference(name: string, revision: string): void {
  if (!isRepositoryName(name))
    throw new ArgumentError(
      "pull",
      "invalidName",
      `expected the name of a model as owner/name, got ${JSON.stringify(name)}`,
    );
  if (!isRevision(revision))
    throw new ArgumentError(
      "pull",
      "invalidRevision",
      `expected a branch, tag or commit, got ${JSON.stringify(revision)}`,
    );
}

/** Returns the folder of a repository in the cache. */
export const folderName = (name: string): string => `models--${name.replace("/", "--")}`;
