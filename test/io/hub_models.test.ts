/** Models by their names on a hub: what is downloaded, found in the cache, chosen and refused. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import fc from "fast-check";
import { packageRoot } from "../../src/core/paths.ts";
import { type LocateOptions, locateCached, locateModel } from "../../src/io/hub/locate.ts";
import { pull } from "../../src/io/hub/pull.ts";
import { parseReference } from "../../src/io/hub/reference.ts";
import { type HubSettings, hubSettings } from "../../src/io/hub/settings.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { checksum, type Fault, HubServer, type Repository } from "./hub_server.ts";

const folder = testFolder("hub-models");
const server = new HubServer();
afterAll(() => server[Symbol.dispose]());
const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const patience = { stallMilliseconds: 30_000, attempts: 4, waitMilliseconds: 1 };

let count = 0;
let settings: HubSettings;
const locate = (given: string, options: LocateOptions = {}) =>
  locateModel("loadModel", given, { settings, patience, ...options });
const failed = async (run: Promise<unknown>): Promise<{ readonly code: string; readonly message: string }> =>
  run.then(
    () => expect.unreachable(),
    (error) => error,
  );

const usual = {
  "config.json": "{}",
  "tokenizer.json": "{}",
  "model.safetensors": randomBytes(2000),
} as const;
const put = (files: Repository["files"], more: Partial<Repository> = {}): void => {
  server.repositories["owner/name"] = { files, commit: COMMIT, ...more };
};
const downloaded = (): string[] => {
  const snapshot = join(settings.cache, "models--owner--name", "snapshots", COMMIT);
  const all = readdirSync(snapshot, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  return all.map((entry) => relative(snapshot, join(entry.parentPath, entry.name))).toSorted();
};

beforeEach(() => {
  settings = { endpoint: server.endpoint, cache: folder.file(`cache-${count++}`), token: undefined, isOffline: false };
  server.seen.length = 0;
  server.faults = [];
  server.missing = undefined;
  put(usual);
});

/** Writes files as Python's `huggingface_hub` does. */
function cachedByPython(files: Repository["files"], revision = "main"): string {
  const root = join(settings.cache, "models--owner--name");
  for (const [path, contents] of Object.entries(files)) {
    const [blob, link] = [join(root, "blobs", checksum(path, contents)), join(root, "snapshots", COMMIT, path)];
    for (const own of [blob, link]) mkdirSync(dirname(own), { recursive: true });
    writeFileSync(blob, contents);
    symlinkSync(relative(dirname(link), blob), link);
  }
  mkdirSync(dirname(join(root, "refs", revision)), { recursive: true });
  writeFileSync(join(root, "refs", revision), COMMIT);
  return join(root, "snapshots", COMMIT);
}

test("models that Python's tools cached are found without a request, by tag and by commit", async () => {
  const snapshot = cachedByPython(usual, "v1.0");
  for (const revision of ["v1.0", COMMIT]) {
    expect(await locate(`owner/name@${revision}`)).toBe(snapshot);
    expect(await locate(`owner/name@${revision}`, { offline: true })).toBe(snapshot);
  }
  expect(server.seen).toEqual([]);
});

test("a model that lacks weights in the cache is downloaded, with the files that loading needs", async () => {
  put({
    ...usual,
    "README.md": "no",
    "onnx/model.onnx": "no",
    "pytorch_model.bin": "no",
    "consolidated.safetensors": "no",
    "chat_template.jinja": "yes",
    "modules.json": '[{"path":"","type":"T"},{"path":"1_Pooling","type":"P"},{"path":"2_Dense","type":"D"}]',
    "1_Pooling/config.json": "{}",
    "2_Dense/config.json": "{}",
    "2_Dense/model.safetensors": "dense",
    "2_Dense/pytorch_model.bin": "no",
    "3_Other/config.json": "no",
  });
  cachedByPython({ "config.json": "{}" });
  expect(readFileSync(join(await locate("owner/name"), "2_Dense/model.safetensors"), "utf8")).toBe("dense");
  expect(downloaded()).toEqual([
    "1_Pooling/config.json",
    "2_Dense/config.json",
    "2_Dense/model.safetensors",
    "chat_template.jinja",
    "config.json",
    "model.safetensors",
    "modules.json",
    "tokenizer.json",
  ]);
  const before = server.seen.length;
  await locate("owner/name");
  expect(server.seen.length).toBe(before);
});

test("of a sharded model, the shards in the index are downloaded, and each is required", async () => {
  const index = JSON.stringify({ weight_map: { a: "x-1.safetensors", b: "x-2.safetensors", c: "x-1.safetensors" } });
  const { "model.safetensors": _, ...others } = usual;
  const shards = { "x-1.safetensors": "1", "x-2.safetensors": "2" };
  put({ ...others, "model.safetensors.index.json": index, ...shards, "x-3.safetensors": "no" });
  const path = await locate("owner/name");
  expect(downloaded().filter((file) => file.startsWith("x"))).toEqual(["x-1.safetensors", "x-2.safetensors"]);
  rmSync(join(path, "x-2.safetensors"));
  expect((await failed(locate("owner/name", { offline: true }))).code).toBe("notFound");
  await locate("owner/name");
  expect(existsSync(join(path, "x-2.safetensors"))).toBe(true);
});

test("an interrupted download does not look complete: weights come last", async () => {
  put({ ...usual, "zz.jinja": "x" });
  server.missing = "zz.jinja";
  expect((await failed(locate("owner/name"))).message).toContain("owner/name has no such file");
  expect((await failed(locate(`owner/name@${COMMIT}`, { offline: true }))).code).toBe("notFound");
  server.missing = undefined;
  expect(downloaded()).toEqual(["config.json", "tokenizer.json"]);
  expect(existsSync(join(await locate("owner/name"), "zz.jinja"))).toBe(true);
});

test("a model without a tokenizer in the cache is completed, or used if the hub can't be reached", async () => {
  const { "tokenizer.json": _, ...others } = usual;
  const snapshot = cachedByPython(others);
  const unreachable = { ...settings, endpoint: "http://127.0.0.1:9" };
  expect(await locate("owner/name", { offline: true })).toBe(snapshot);
  expect(await locate("owner/name", { settings: unreachable, patience: { ...patience, attempts: 1 } })).toBe(snapshot);
  expect(existsSync(join(snapshot, "tokenizer.json"))).toBe(false);
  expect(await locate("owner/name")).toBe(snapshot);
  expect(existsSync(join(snapshot, "tokenizer.json"))).toBe(true);
});

test("a model of sentence-transformers that lacks a module in the cache is completed", async () => {
  const modules = '[{"path":"","type":"T"},{"path":"1_Pooling","type":"P"},{"path":"2_Normalize","type":"N"}]';
  const files = { ...usual, "modules.json": modules };
  put({ ...files, "1_Pooling/config.json": "{}" });
  const snapshot = cachedByPython(files);
  expect(await locate("owner/name")).toBe(snapshot);
  expect(existsSync(join(snapshot, "1_Pooling/config.json"))).toBe(true);
  const before = server.seen.length;
  expect(await locate("owner/name")).toBe(snapshot);
  expect(server.seen.length).toBe(before); // the module of normalization has no files to request
});

describe("names of GGUF files", () => {
  const files = {
    "Name-Q8_0.gguf": "8",
    "name.q4_k_m.gguf": "4",
    "IQ2_XXS/Name-IQ2_XXS-00001-of-00002.gguf": "a",
    "IQ2_XXS/Name-IQ2_XXS-00002-of-00002.gguf": "b",
    "mmproj-Name-F16.gguf": "no",
    "config.json": "{}",
  };
  test.each([
    ["owner/name", "name.q4_k_m.gguf", 1],
    ["owner/name:Q8_0", "Name-Q8_0.gguf", 1],
    ["owner/name@main:iq2_xxs", "IQ2_XXS/Name-IQ2_XXS-00001-of-00002.gguf", 2],
  ])("the name %s means %s", async (given, file, parts) => {
    put(files);
    const path = await locate(given);
    expect(path).toEndWith(`/snapshots/${COMMIT}/${file}`);
    expect(downloaded().length).toBe(parts);
    const before = server.seen.length;
    expect([await locate(given), await locate(given, { offline: true })]).toEqual([path, path]);
    expect(server.seen.length).toBe(before);
    if (parts === 1) return;
    rmSync(path.replace("00001-of", "00002-of"));
    expect((await failed(locate(given, { offline: true }))).code).toBe("notFound");
  });

  test("an unknown quantization is an error that lists those of the repository", async () => {
    put(files);
    expect(await failed(locate("owner/name:Q5_K"))).toMatchObject({
      code: "unknownQuantization",
      message: expect.stringContaining("with Q5_K, got IQ2_XXS, Q8_0, Q4_K_M; name one as in owner/name:IQ2_XXS"),
    });
    put({ "a-Q8_0.gguf": "a", "b-Q8_0.gguf": "b" });
    expect((await failed(locate("owner/name:Q8_0"))).message).toContain("got 2 files with Q8_0");
    put(usual);
    expect((await failed(locate("owner/name:Q8_0"))).message).toContain("got no GGUF file; omit it");
  });
});

describe("models are requested from the hub only if needed", () => {
  test("a text that can only be a path is not requested from the hub", async () => {
    for (const given of ["nothing", "./owner/name", "a/b/c", "owner/name.gguf", "../name", "/owner/name"])
      expect(await failed(locate(given))).toMatchObject({ code: "notFound", path: given });
    expect(server.seen).toEqual([]);
  });

  test("the error for a name offline states the command that downloads it", async () => {
    const { message } = await failed(locate("owner/name@v1:Q8_0", { offline: true }));
    expect(message).toContain(`no complete model of this name in ${settings.cache}`);
    expect(message).toEndWith("src/cli/orchard.ts pull owner/name@v1:Q8_0");
    expect(() => locateCached("loadTokenizer", "owner/name")).toThrow("this call does not download");
  });

  test("the error for a name that the hub does not have lists the places that were tried", async () => {
    const { code, message } = await failed(locate("owner/other"));
    expect(code).toBe("unauthorized");
    expect(message).toContain("the hub has no model owner/other; if it is private, set HF_TOKEN");
    expect(message).toContain(`Tried the path owner/other, the cache ${settings.cache} and this hub`);
    expect((await failed(locate("owner/name@v9"))).message).toContain("owner/name has no branch, tag or commit v9");
  });

  test.each([
    [undefined, "unauthorized", "needs a token: accept its terms at"],
    ["wrong", "forbidden", "the token has no access to owner/name: accept its terms at"],
  ])("a gated model is rejected with the token %s, and found with the right one", async (token, code, text) => {
    put(usual, { token: "right", error: "GatedRepo" });
    const found = await failed(locate("owner/name", { settings: { ...settings, token } }));
    expect(found.code).toBe(code);
    expect(found.message).toContain(text);
    expect(await locate("owner/name", { settings: { ...settings, token: "right" } })).toEndWith(COMMIT);
    // The other host gets no token.
    const large = server.seen.filter(({ host }) => host === "files");
    expect(large.map(({ authorization }) => authorization)).toEqual([null]);
  });

  test("the error for pickled weights states the code that converts them", async () => {
    put({ "config.json": "{}", "pytorch_model-00001-of-00002.bin": "x" });
    expect(await failed(locate("owner/name"))).toMatchObject({
      code: "pickledWeights",
      message: expect.stringContaining("from_pretrained('owner/name').save_pretrained('converted')"),
    });
  });

  test("a hub that asks for a short pause is asked again after it", async () => {
    const times: number[] = [];
    using busy = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) => {
        times.push(performance.now());
        if (times.length === 1) return new Response("", { status: 429, headers: { "retry-after": "1" } });
        return Response.redirect(`${server.endpoint}${new URL(url).pathname}`);
      },
    });
    const path = await locate("owner/name", { settings: { ...settings, endpoint: `http://127.0.0.1:${busy.port}` } });
    expect(readFileSync(join(path, "config.json"), "utf8")).toBe("{}");
    expect(times[1] - times[0]).toBeGreaterThan(950);
  });

  test("a hub that asks for a long pause is an error", async () => {
    using busy = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response("", { status: 429, headers: { "retry-after": "3600" } }),
    });
    const { code, message } = await failed(
      locate("owner/name", { settings: { ...settings, endpoint: `http://127.0.0.1:${busy.port}` } }),
    );
    expect([code, message]).toEqual(["unavailable", expect.stringContaining("too many requests")]);
  });
});

test("drawn repositories with drawn faults arrive complete, and leave no partial file", async () => {
  const fault = fc.constantFrom<(Fault | null)[]>(null, null, "cut", "status503", "status429", "wholeFile");
  const size = fc.integer({ min: 0, max: 40_000 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fault, { maxLength: 12 }),
      fc.array(size, { minLength: 1, maxLength: 4 }),
      async (faults, sizes) => {
        const shards = Object.fromEntries(sizes.map((bytes, at) => [`part-${at}.safetensors`, randomBytes(bytes)]));
        const index = JSON.stringify({
          weight_map: Object.fromEntries(Object.keys(shards).map((file) => [file, file])),
        });
        const files = {
          "config.json": "{}",
          "tokenizer.json": "{ }",
          "model.safetensors.index.json": index,
          ...shards,
        };
        put(files);
        settings = { ...settings, cache: folder.file(`cache-${count++}`) };
        server.faults = [...faults];
        const path = await locate("owner/name", { patience: { ...patience, attempts: 14 } });
        for (const [file, contents] of Object.entries(files))
          expect(readFileSync(join(path, file))).toEqual(Buffer.from(contents));
        const blobs = readdirSync(join(settings.cache, "models--owner--name", "blobs"));
        expect(blobs.filter((name) => !/^[0-9a-f]+$/.test(name))).toEqual([]);
      },
    ),
    { seed: 5, numRuns: 40 },
  );
});

test("several processes download each file once", async () => {
  put({ ...usual, "model.safetensors": randomBytes(3_000_000) });
  const environment = { HF_ENDPOINT: server.endpoint, HF_HUB_CACHE: settings.cache, HF_HUB_OFFLINE: "0" };
  const command = [...bunWords, "src/cli/orchard.ts", "pull", "owner/name"];
  const runs = [1, 2, 3].map(() =>
    Bun.spawn(command, { cwd: packageRoot, env: { ...process.env, ...environment }, stdout: "pipe", stderr: "ignore" }),
  );
  const outputs = await Promise.all(runs.map((run) => new Response(run.stdout).text()));
  expect(new Set(outputs)).toEqual(new Set([`${join(settings.cache, "models--owner--name", "snapshots", COMMIT)}\n`]));
  expect(server.seen.filter(({ host }) => host === "files")).toHaveLength(1);
});

const namespace = ["unshare", "--user", "--map-root-user", "--mount"];
const hasNamespaces = process.platform === "linux" && Bun.spawnSync([...namespace, "true"]).exitCode === 0;
test.if(hasNamespaces)("a disk that becomes full is an error, and no half file remains", async () => {
  put({ ...usual, "model.safetensors": randomBytes(6_000_000) });
  mkdirSync(settings.cache);
  // The disk has room when the download begins; another file takes it in the meantime.
  const script = `
    import { writeFileSync } from "node:fs";
    import { pull } from "./src/io/hub/pull.ts";
    let isFilled = false;
    const fill = () => { isFilled ||= (writeFileSync("${settings.cache}/other", Buffer.alloc(5e6)), true); };
    await pull("owner/name", { ...${JSON.stringify({ ...settings, ...patience, revision: "main" })}, onProgress: fill })
      .catch((error) => console.log(error.name, error.code));`;
  const path = folder.file(`full-${count}.ts`);
  writeFileSync(path, script.replace("./src", join(packageRoot, "src")));
  const list = `find ${settings.cache} -name "*.incomplete" -o -name "*.tmp" -o -type f -size +5000k`;
  const mount = `mount -t tmpfs -o size=8m tmpfs ${settings.cache} && "$@"; ${list}`;
  const child = Bun.spawn([...namespace, "bash", "-c", mount, "bash", ...bunWords, path], { stdout: "pipe" });
  expect(await new Response(child.stdout).text()).toBe("FileError diskFull\n");
});

test("the settings match Hugging Face's tools", () => {
  const home = folder.file("user");
  mkdirSync(join(home, "own"), { recursive: true });
  writeFileSync(join(home, "own", "token"), "kept\n");
  const of = (values: Record<string, string>) => hubSettings({ HOME: home, ...values });
  expect(of({})).toEqual({
    endpoint: "https://huggingface.co",
    cache: join(home, ".cache/huggingface/hub"),
    token: undefined,
    isOffline: false,
  });
  expect(of({ XDG_CACHE_HOME: "/x" }).cache).toBe("/x/huggingface/hub");
  expect(of({ XDG_CACHE_HOME: "/x", HF_HOME: "~/own" })).toMatchObject({ cache: `${home}/own/hub`, token: "kept" });
  expect(of({ HF_HOME: "/y", HF_HUB_CACHE: "/z" }).cache).toBe("/z");
  expect(of({ HF_TOKEN: " a ", HF_TOKEN_PATH: "~/own/token" }).token).toBe("a");
  expect(of({ HF_TOKEN_PATH: "~/own/token" }).token).toBe("kept");
  for (const [value, isOffline] of [
    ["1", true],
    ["yes", true],
    ["ON", true],
    ["0", false],
    ["no", false],
  ] as const)
    expect(of({ HF_HUB_OFFLINE: value }).isOffline).toBe(isOffline);
});

test("references are parsed as written", () => {
  const part = fc.stringMatching(/^[A-Za-z0-9][\w.-]{0,8}$/).filter((text) => !text.endsWith(".gguf"));
  fc.assert(
    fc.property(part, part, fc.option(part), fc.option(part), (owner, name, revision, quantization) => {
      const end = `${revision === null ? "" : `@${revision}`}${quantization === null ? "" : `:${quantization}`}`;
      expect(parseReference(`${owner}/${name}${end}`)).toEqual({
        name: `${owner}/${name}`,
        revision: revision ?? "main",
        quantization: quantization ?? undefined,
      });
    }),
    { seed: 3 },
  );
});

test("a chosen quantization is a parameter of pull too", async () => {
  put({ "a-Q8_0.gguf": "8", "a-F16.gguf": "16" });
  const options = { ...settings, ...patience, revision: "main", include: undefined, signal: undefined };
  const pulled = await pull("owner/name", { ...options, quantization: "f16", onProgress: () => undefined });
  expect(pulled.path).toBe(join(pulled.folder, "a-F16.gguf"));
});
