/**
 * A server that imitates a hub: listings with checksums, files with ranges, redirects of large files to another host,
 * `x-error-code`, and faults that a test draws.
 */
import { createHash } from "node:crypto";

/** A response that replaces the honest one, for one request. */
export type Fault = "cut" | "status503" | "status429" | "wholeFile";

export interface Repository {
  readonly files: Readonly<Record<string, Uint8Array | string>>;
  readonly commit: string;
  /** The token that may read it. Default: it is public. */
  readonly token?: string;
  /** The code for a token without access. */
  readonly error?: "GatedRepo" | "RepoNotFound";
}

export interface Seen {
  readonly host: "hub" | "files";
  readonly path: string;
  readonly range: string | null;
  readonly authorization: string | null;
}

const bytesOf = (contents: Uint8Array | string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(typeof contents === "string" ? Buffer.from(contents) : contents);
const isLarge = (path: string): boolean => /\.(safetensors|gguf|bin)$/.test(path);
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const gitHash = (bytes: Uint8Array): string =>
  createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

/** The checksum by which the cache names a file. */
export const checksum = (path: string, contents: Uint8Array | string): string =>
  (isLarge(path) ? sha256 : gitHash)(bytesOf(contents));

/** The hub, and another host to which it redirects large files. */
export class HubServer implements Disposable {
  readonly repositories: Record<string, Repository> = {};
  readonly seen: Seen[] = [];
  /** The faults of the next requests for files, one after the other; null: none. */
  faults: (Fault | null)[] = [];
  /** A file that is listed but missing. */
  missing: string | undefined;
  private readonly hub = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.answer(request) });
  private readonly others = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.large(request) });

  get endpoint(): string {
    return `http://127.0.0.1:${this.hub.port}`;
  }

  [Symbol.dispose](): void {
    void this.hub.stop(true);
    void this.others.stop(true);
  }

  private note(host: Seen["host"], request: Request): URL {
    const url = new URL(request.url);
    const [range, authorization] = ["range", "authorization"].map((name) => request.headers.get(name));
    this.seen.push({ host, path: url.pathname, range: range!, authorization: authorization! });
    return url;
  }

  private answer(request: Request): Response {
    const { pathname } = this.note("hub", request);
    const listing = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(pathname);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/([0-9a-f]{40})\/(.+)$/.exec(pathname);
    const name = (listing ?? file)?.[1] ?? "";
    const repository = this.repositories[name];
    const refused = refusal(repository, request);
    if (refused) return refused;
    const { files, commit } = repository;
    if (listing) {
      if (!["main", commit].includes(decodeURIComponent(listing[2]))) return failure(404, "RevisionNotFound");
      return Response.json({ sha: commit, siblings: Object.entries(files).map(sibling) });
    }
    const path = decodeURIComponent(file![3]);
    if (files[path] === undefined || path === this.missing || file![2] !== commit) return failure(404, "EntryNotFound");
    const bytes = bytesOf(files[path]);
    if (!isLarge(path)) return this.part(request, bytes, { etag: `"${gitHash(bytes)}"` });
    const location = `http://127.0.0.1:${this.others.port}/${name}/${path}?signature=1`;
    const headers = { location, "x-linked-etag": `"${sha256(bytes)}"`, "x-linked-size": String(bytes.length) };
    return new Response(null, { status: 302, headers: { ...headers, "x-repo-commit": commit } });
  }

  private large(request: Request): Response {
    const [, owner, name, ...path] = decodeURIComponent(this.note("files", request).pathname).split("/");
    return this.part(request, bytesOf(this.repositories[`${owner}/${name}`].files[path.join("/")]), {});
  }

  private part(request: Request, bytes: Uint8Array<ArrayBuffer>, headers: Record<string, string>): Response {
    const fault = this.faults.shift() ?? null;
    if (fault === "status503") return new Response("", { status: 503 });
    if (fault === "status429") return new Response("", { status: 429, headers: { "retry-after": "0" } });
    const asked = Number(/^bytes=(\d+)-$/.exec(request.headers.get("range") ?? "")?.[1] ?? 0);
    const start = fault === "wholeFile" ? 0 : asked;
    const range = { "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}` };
    const answer = { status: start > 0 ? 206 : 200, headers: { ...headers, ...(start > 0 && range) } };
    const rest = bytes.subarray(start);
    return new Response(fault === "cut" && rest.length > 1 ? cut(rest) : rest, answer);
  }
}

/** A body that ends in the middle. */
const cut = (bytes: Uint8Array): ReadableStream =>
  new ReadableStream({
    start: (controller) => controller.enqueue(bytes.subarray(0, bytes.length >> 1)),
    async pull(controller) {
      await Bun.sleep(1); // otherwise the server would know and announce the length
      controller.close();
    },
  });

const sibling = ([path, contents]: [string, Uint8Array | string]) => {
  const bytes = bytesOf(contents);
  const lfs = isLarge(path) && { lfs: { sha256: sha256(bytes), size: bytes.length } };
  return { rfilename: path, size: bytes.length, blobId: gitHash(bytes), ...lfs };
};

const failure = (status: number, code: string): Response =>
  new Response("", { status, headers: { "x-error-code": code } });

/**
 * Answers as the hub does: 401 without a token, even for a model that does not exist, and 403 or 404 with a wrong one.
 */
function refusal(repository: Repository | undefined, request: Request): Response | undefined {
  const token = request.headers.get("authorization")?.replace("Bearer ", "");
  if (repository === undefined) return failure(token === undefined ? 401 : 404, "RepoNotFound");
  if (repository.token === undefined || token === repository.token) return undefined;
  return failure(token === undefined ? 401 : 403, repository.error ?? "RepoNotFound");
}
