/** Lists the files of a model on a hub. */
import { isSafeInteger } from "../../core/values.ts";
import { isJsonObject, type Json, parseJson } from "../json.ts";
import { DownloadError } from "./errors.ts";
import { type Connection, request } from "./request.ts";
import { checkStatus } from "./status.ts";

/** A file of a model. */
export interface RemoteFile {
  /** The path in the repository. */
  readonly path: string;
  readonly size: number;
  /** The SHA-256 of the contents for large files, git's SHA-1 of the blob for others. */
  readonly hash: { readonly kind: "sha256" | "git"; readonly value: string };
}

/** A model at one commit. */
export interface Repository {
  readonly commit: string;
  readonly files: readonly RemoteFile[];
}

/** The limit of the response, which lists files: a few megabytes at most. */
const MOST_LISTED_BYTES = 64 * 2 ** 20;

/** Requests the commit and the files of a model. @throws {DownloadError} */
export async function repositoryOf(connection: Connection, name: string, revision: string): Promise<Repository> {
  const url = `${connection.endpoint}/api/models/${name}/revision/${encodeURIComponent(revision)}?blobs=true`;
  const { response, heard, end } = await request(connection, url, { accept: "application/json" });
  try {
    checkStatus(response, url, { ...connection, name, revision, hasToken: connection.token !== undefined });
    const json = parseJson(await textOf(response, url, heard), (_, message) =>
      invalid(url, `expected JSON: ${message}`),
    );
    return read(json, url);
  } finally {
    end();
  }
}

async function textOf(response: Response, url: string, heard: () => void): Promise<string> {
  const parts: Uint8Array[] = [];
  let count = 0;
  for await (const part of response.body ?? []) {
    heard();
    count += part.byteLength;
    if (count > MOST_LISTED_BYTES) throw invalid(url, `expected at most ${MOST_LISTED_BYTES} bytes, got more`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

const invalid = (url: string, message: string): DownloadError => new DownloadError("invalidAnswer", url, message);

function read(json: Json, url: string): Repository {
  if (!isJsonObject(json)) throw invalid(url, "expected an object");
  const { sha, siblings } = json;
  if (typeof sha !== "string" || !/^[0-9a-f]{40}$/.test(sha)) throw invalid(url, "expected sha to be a commit");
  if (!Array.isArray(siblings)) throw invalid(url, "expected siblings to be a list of files");
  return { commit: sha, files: siblings.map((sibling) => fileOf(sibling, url)) };
}

function fileOf(json: Json, url: string): RemoteFile {
  if (!isJsonObject(json)) throw invalid(url, "expected a file to be an object");
  const { rfilename: path, size, blobId, lfs } = json;
  if (typeof path !== "string" || !isInside(path))
    throw invalid(url, `expected the name of a file in the repository, got ${JSON.stringify(path)}`);
  if (!isSafeInteger(size) || size < 0)
    throw invalid(url, `expected the size of ${path} to be a whole number of at least 0`);
  const sha256 = isJsonObject(lfs ?? null) ? (lfs as { readonly sha256?: Json }).sha256 : undefined;
  if (typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256))
    return { path, size, hash: { kind: "sha256", value: sha256 } };
  if (typeof blobId === "string" && /^[0-9a-f]{40}$/.test(blobId))
    return { path, size, hash: { kind: "git", value: blobId } };
  throw invalid(url, `expected a checksum of ${path}: lfs.sha256 or blobId`);
}

/** Whether a path from the network stays inside the folder. */
const isInside = (path: string): boolean =>
  path !== "" && !/[\\\0]/.test(path) && path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
