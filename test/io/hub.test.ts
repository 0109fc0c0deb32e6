/** `orchard pull` against a server on the loopback address that disconnects, sends wrong data and responds slowly. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { type PullOptions, pull } from "../../src/io/hub/pull.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const folder = testFolder("hub");
const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const large = randomBytes(300_000);
const small = Buffer.from('{"model_type":"llama"}');
const sha256 = createHash("sha256").update(large).digest("hex");
const git = createHash("sha1").update(`blob ${small.length}\0`).update(small).digest("hex");

/** The server's responses to requests for the large file, one after the other; the last one repeats. */
type Behaviour = (request: Request, start: number) => Response | Promise<Response>;
let behaviours: Behaviour[] = [];
let listing: () => unknown;
const seen: { path: string; range: string | null; authorization: string | null }[] = [];

const usualListing = () => ({
  sha: COMMIT,
  siblings: [
    { rfilename: "config.json", size: small.length, blobId: git },
    {
      rfilename: "model.safetensors",
      size: large.length,
      blobId: "f".repeat(40),
      lfs: { sha256, size: large.length },
    },
    { rfilename: "deep/er/config.json", size: small.length, blobId: git },
    { rfilename: "model.bin", size: 9, blobId: "e".repeat(40) },
  ],
});

const part = (start: number, bytes: Uint8Array = large.subarray(start)): Response =>
  new Response(bytes, {
    status: start > 0 ? 206 : 200,
    headers: start > 0 ? { "content-range": `bytes ${start}-${large.length - 1}/${large.length}` } : {},
  });
const honest: Behaviour = (_, start) => part(start);

/** Sends this many bytes, and then does something with the connection. */
const sending =
  (count: number, after: (controller: ReadableStreamDefaultController) => void): Behaviour =>
  (_, start) => {
    const stream = new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array(large.subarray(start, start + count))),
      async pull(controller) {
        await Bun.sleep(1); // otherwise the server would know and announce the length
        after(controller);
      },
    });
    const headers: Record<string, string> =
      start > 0 ? { "content-range": `bytes ${start}-${large.length - 1}/${large.length}` } : {};
    return new Response(stream, { status: start > 0 ? 206 : 200, headers });
  };

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 60,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const range = request.headers.get("range");
    seen.push({ path: pathname, range, authorization: request.headers.get("authorization") });
    if (pathname.startsWith("/api/models/owner/name/revision/")) return Response.json(listing());
    if (pathname.startsWith(`/owner/name/resolve/${COMMIT}/`) && pathname.endsWith("config.json"))
      return new Response(small);
    if (pathname !== `/owner/name/resolve/${COMMIT}/model.safetensors`) return new Response("", { status: 404 });
    const behaviour = behaviours.length > 1 ? behaviours.shift()! : behaviours[0];
    return behaviour(request, Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0));
  },
});
afterAll(() => server.stop(true));

const endpoint = `http://127.0.0.1:${server.port}`;
let count = 0;
let options: PullOptions;
let home: string;
beforeEach(() => {
  behaviours = [honest];
  listing = usualListing;
  seen.length = 0;
  home = folder.file(`home-${count++}`);
  options = {
    endpoint,
    cache: join(home, "hub"),
    token: undefined,
    revision: "main",
    include: undefined,
    signal: undefined,
    stallMilliseconds: 30_000,
    attempts: 3,
    waitMilliseconds: 1,
    onProgress: () => undefined,
  };
});

const cache = () => join(options.cache, "models--owner--name");
const blobs = () => readdirSync(join(cache(), "blobs")).sort();
const requestsOfLarge = () => seen.filter(({ path }) => path.endsWith(".safetensors"));
const codeOf = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => "done",
    (error) => error.code,
  );

test("files are in the layout of Hugging Face's cache, and not downloaded again", async () => {
  const progress: number[] = [];
  const { path } = await pull("owner/name", { ...options, onProgress: ({ bytes }) => progress.push(bytes) });
  expect(path).toBe(join(cache(), "snapshots", COMMIT));
  expect(readFileSync(join(path, "config.json"))).toEqual(small);
  expect(readFileSync(join(path, "model.safetensors"))).toEqual(large);
  expect(readlinkSync(join(path, "model.safetensors"))).toBe(`../../blobs/${sha256}`);
  expect(existsSync(join(path, "model.bin"))).toBe(false);
  expect(readFileSync(join(cache(), "refs", "main"), "utf8")).toBe(COMMIT);
  expect(progress.at(-1)).toBe(small.length + large.length);
  expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  await pull("owner/name", options);
  expect(requestsOfLarge()).toHaveLength(1);
});

test("a file in a subfolder keeps its path", async () => {
  const { path } = await pull("owner/name", { ...options, include: ["deep/**"] });
  expect(readFileSync(join(path, "deep", "er", "config.json"))).toEqual(small);
  expect(readlinkSync(join(path, "deep", "er", "config.json"))).toBe(`../../../../blobs/${git}`);
});

test("an interrupted download resumes", async () => {
  const broken = sending(100_000, (controller) => controller.close());
  behaviours = [broken, broken, honest];
  const { path } = await pull("owner/name", options);
  expect(readFileSync(join(path, "model.safetensors"))).toEqual(large);
  expect(requestsOfLarge().map(({ range }) => range)).toEqual([null, "bytes=100000-", "bytes=200000-"]);
});

test("a later call resumes an earlier one's download", async () => {
  behaviours = [sending(100_000, (controller) => controller.close()), () => new Response("", { status: 503 })];
  expect(await codeOf(pull("owner/name", options))).toBe("unavailable");
  expect(blobs()).toEqual([git, `${sha256}.incomplete`].sort());
  behaviours = [honest];
  seen.length = 0;
  await pull("owner/name", options);
  expect(requestsOfLarge().map(({ range }) => range)).toEqual(["bytes=100000-"]);
});

test("a server without range requests sends the whole file", async () => {
  behaviours = [sending(100_000, (controller) => controller.close()), () => part(0)];
  const { path } = await pull("owner/name", options);
  expect(readFileSync(join(path, "model.safetensors"))).toEqual(large);
});

test("a file that was damaged in between fails its checksum, and is downloaded again", async () => {
  mkdirSync(join(cache(), "blobs"), { recursive: true });
  writeFileSync(join(cache(), "blobs", `${sha256}.incomplete`), Buffer.alloc(1000, 7));
  const { path } = await pull("owner/name", options);
  expect(readFileSync(join(path, "model.safetensors"))).toEqual(large);
  expect(requestsOfLarge().map(({ range }) => range)).toEqual(["bytes=1000-", null]);
});

describe("wrong responses of the hub are reported", () => {
  const other = Buffer.from(large);
  other[5] = other[5] ^ 1;
  test.each<[string, Behaviour, string]>([
    ["another file of the same size", () => new Response(other), "checksumDiffers"],
    ["a longer file, announced", () => new Response(Buffer.concat([large, large])), "wrongSize"],
    ["a shorter one, announced", () => new Response(new Uint8Array(large.subarray(0, 10))), "wrongSize"],
    [
      "a longer file, not announced",
      sending(large.length, (controller) => {
        controller.enqueue(new Uint8Array(5));
        controller.close();
      }),
      "tooLong",
    ],
    ["a file that ends too early", sending(9, (controller) => controller.close()), "tooShort"],
    ["nothing", () => new Response(""), "wrongSize"],
    [
      "a part that was not requested",
      (_, start) =>
        start
          ? new Response(new Uint8Array(large.subarray(start)), {
              status: 206,
              headers: { "content-range": `bytes 0-9/${large.length}` },
            })
          : sending(9, (controller) => controller.close())(_, start),
      "wrongRange",
    ],
    ["no file", () => new Response("", { status: 404 }), "notFound"],
    [
      "a redirect to a file of this machine",
      () => new Response("", { status: 302, headers: { location: "file:///etc/passwd" } }),
      "invalidRedirect",
    ],
    ["redirects without an end", ({ url }) => Response.redirect(url, 302), "tooManyRedirects"],
  ])("%s is an error", async (_, behaviour, code) => {
    behaviours = [behaviour];
    // after a partial response the download continues, so that response is tried once
    const attempts = code === "tooShort" ? 1 : 3;
    expect(await codeOf(pull("owner/name", { ...options, attempts }))).toBe(code);
    expect(existsSync(join(cache(), "blobs", sha256))).toBe(false);
  });

  const sibling = (own: object) => ({ sha: COMMIT, siblings: [{ rfilename: "a.json", size: 1, blobId: git, ...own }] });
  test.each<[string, unknown]>([
    ["no object", []],
    ["no commit", { sha: "../../x", siblings: [] }],
    ["no list", { sha: COMMIT, siblings: {} }],
    ["a name above the folder", sibling({ rfilename: "../a.json" })],
    ["a name from the root", sibling({ rfilename: "/a.json" })],
    ["a name with a NUL", sibling({ rfilename: "a\0.json" })],
    ["a negative size", sibling({ size: -1 })],
    ["no checksum", sibling({ blobId: "../../../etc/passwd" })],
    ["a checksum that is a path", sibling({ blobId: undefined, lfs: { sha256: "../x" } })],
  ])("a listing with %s is an error", async (_, own) => {
    listing = () => own;
    expect(await codeOf(pull("owner/name", options))).toBe("invalidAnswer");
  });
});

test("a server that stops responding is retried after the timeout", async () => {
  behaviours = [sending(100_000, () => undefined), honest];
  const { path } = await pull("owner/name", { ...options, stallMilliseconds: 500, attempts: 20 });
  expect(readFileSync(join(path, "model.safetensors"))).toEqual(large);
  expect(requestsOfLarge().length).toBeGreaterThan(1);
});

test("a signal ends a download, and the received part stays", async () => {
  const controller = new AbortController();
  behaviours = [sending(100_000, () => undefined)];
  const onProgress = ({ bytes }: { bytes: number }) => bytes > 100_000 && controller.abort(new Error("enough"));
  const run = pull("owner/name", { ...options, signal: controller.signal, onProgress });
  await expect(run).rejects.toThrow("enough");
  expect(blobs()).toContain(`${sha256}.incomplete`);
});

test("the token is sent to the hub, and to no other server", async () => {
  const others: (string | null)[] = [];
  using other = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      others.push(request.headers.get("authorization"));
      return new Response(large);
    },
  });
  behaviours = [() => Response.redirect(`http://127.0.0.1:${other.port}/large`, 302)];
  await pull("owner/name", { ...options, token: "secret" });
  expect(others).toEqual([null]);
  expect(new Set(seen.map(({ authorization }) => authorization))).toEqual(new Set(["Bearer secret"]));
});

test("names and revisions that lead outside the repository are rejected before any request", async () => {
  for (const name of ["name", "a/b/c", "../x", "a/..", "a b/c", ""])
    expect(await codeOf(pull(name, options))).toBe("invalidName");
  for (const revision of ["../x", "a//b", "", "a/.."])
    expect(await codeOf(pull("owner/name", { ...options, revision }))).toBe("invalidRevision");
  expect(seen).toEqual([]);
});

test("the error for a missing file lists the existing files", async () => {
  const run = pull("owner/name", { ...options, include: ["*.gguf"] });
  await expect(run).rejects.toThrow(
    "it has config.json, model.safetensors, deep/er/config.json, model.bin; choose files with --include",
  );
});

describe("the command orchard pull", () => {
  const orchard = async (words: readonly string[], environment: Record<string, string>) => {
    const { XDG_CACHE_HOME: _, ...others } = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith("HF_")),
    );
    const child = Bun.spawn([...bunWords, "src/cli/orchard.ts", "pull", ...words], {
      cwd: packageRoot,
      env: { ...others, ...environment },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { out, error, code: await child.exited };
  };

  test("orchard pull prints the folder", async () => {
    mkdirSync(home);
    writeFileSync(join(home, "token"), "kept\n");
    const { out, error, code } = await orchard(["owner/name"], { HF_ENDPOINT: `${endpoint}/`, HF_HOME: home });
    expect([out, code]).toEqual([`${join(cache(), "snapshots", COMMIT)}\n`, 0]);
    expect(error).toContain("2 of 2: model.safetensors");
    expect(seen[0].authorization).toBe("Bearer kept");
  });

  test("without HF_HOME, the cache is in the user's folder; HF_TOKEN precedes the stored token", async () => {
    const user = join(home, "user");
    const hub = join(user, ".cache", "huggingface");
    mkdirSync(hub, { recursive: true });
    writeFileSync(join(hub, "token"), "stored");
    const snapshot = join(hub, "hub", "models--owner--name", "snapshots", COMMIT);
    for (const [more, token] of [
      [{}, "stored"],
      [{ HF_TOKEN: "given" }, "given"],
    ] as const) {
      seen.length = 0;
      const { out, code } = await orchard(["owner/name"], { HF_ENDPOINT: endpoint, HOME: user, ...more });
      expect([out, code, seen[0].authorization]).toEqual([`${snapshot}\n`, 0, `Bearer ${token}`]);
    }
  });

  test.each(["0", "-1", "86401"])("a timeout of %s s is rejected", async (seconds) => {
    const { error, code } = await orchard(["owner/name", "--timeout", seconds], { HF_ENDPOINT: endpoint });
    expect([error, code]).toEqual([
      `error: expected --timeout to be a number of seconds above 0 and at most 86400, got ${seconds}\n`,
      1,
    ]);
  });

  test("the longest timeout is a day", async () => {
    const words = ["owner/name", "--timeout", "86400"];
    expect(await orchard(words, { HF_ENDPOINT: endpoint, HF_HOME: home })).toMatchObject({ code: 0 });
  });

  test.each(["hub.example", "ftp://hub.example", "https://", "https:///a"])(
    "%s is rejected as a hub",
    async (HF_ENDPOINT) => {
      const { error, code } = await orchard(["owner/name"], { HF_ENDPOINT, HF_HOME: home });
      expect([error, code]).toEqual([expect.stringContaining("expected HF_ENDPOINT to be the URL of a hub"), 1]);
    },
  );

  test("HF_HUB_OFFLINE forbids downloads", async () => {
    const { out, error, code } = await orchard(["owner/name"], { HF_HUB_OFFLINE: "1", HF_HOME: home });
    expect([out, error, code]).toEqual(["", "error: HF_HUB_OFFLINE is set; unset it to download\n", 1]);
  });
});
