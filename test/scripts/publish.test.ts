/** Publishing a release with npm to a registry in this process: the order, the tag, and repeated runs. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { publish } from "../../scripts/release/publish.ts";
import { testFolder } from "../support/folder.ts";

interface Upload {
  readonly name: string;
  readonly "dist-tags": Readonly<Record<string, string>>;
  readonly versions: Readonly<Record<string, { readonly dist: { readonly integrity: string } }>>;
}

const folder = testFolder("publish");
const tarballs = folder.file("tarballs");
const uploads: Upload[] = [];
/** A name that the registry rejects. */
let refused = "";

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
    if (request.method === "PUT") {
      if (name === refused) return Response.json({ error: "no" }, { status: 500 });
      uploads.push((await request.json()) as Upload);
      return Response.json({ ok: true }, { status: 201 });
    }
    const found = uploads.find((upload) => upload.name === name);
    return found ? Response.json(found) : Response.json({ error: "not found" }, { status: 404 });
  },
});
afterAll(() => server.stop(true));

const names = ["tiny", "tiny-linux-x64"];

async function pack(name: string, content: string, more: object = { repository: "github:a/tiny" }): Promise<void> {
  const root = folder.file(`packed-${name}`);
  await Bun.write(join(root, "package", "package.json"), JSON.stringify({ name, version: "1.2.3", ...more }));
  await Bun.write(join(root, "package", "index.js"), content);
  const command = ["tar", "-czf", join(tarballs, `${name}-1.2.3.tgz`), "-C", root, "package"];
  expect(Bun.spawnSync(command).exitCode).toBe(0);
}

beforeAll(async () => {
  const address = `127.0.0.1:${server.port}`;
  const own = [`registry=http://${address}/`, `//${address}/:_authToken=local`, "fetch-retries=0"];
  const settings = [...own, "update-notifier=false", ""].join("\n");
  await Bun.write(join(tarballs, ".npmrc"), settings);
  await Bun.write(join(tarballs, "package.json"), "{}"); // npm reads .npmrc only next to a package.json
  for (const name of names) await pack(name, "1");
});
beforeEach(() => {
  uploads.length = 0;
  refused = "";
});

test("a release publishes the dependent package last, with the tag next, and no version again", async () => {
  const lines = await publish(tarballs);
  expect(lines).toEqual(["tiny-linux-x64@1.2.3: published as next", "tiny@1.2.3: published as next"]);
  expect(uploads.map(({ name }) => name)).toEqual(["tiny-linux-x64", "tiny"]);
  expect(uploads.map((upload) => upload["dist-tags"])).toEqual(names.map(() => ({ next: "1.2.3" })));
  expect(await publish(tarballs)).toEqual(uploads.map(({ name }) => `${name}@1.2.3: it is published already`));
  expect(uploads).toHaveLength(2);

  await pack("tiny", "2");
  await expect(publish(tarballs)).rejects.toThrow("tiny@1.2.3 is published with other contents");
  expect(uploads).toHaveLength(2);
});

test("a release resumes after a failed run", async () => {
  refused = "tiny";
  await expect(publish(tarballs)).rejects.toThrow("Publishing tiny@1.2.3");
  expect(uploads).toHaveLength(1);
  refused = "";
  expect((await publish(tarballs)).at(-1)).toBe("tiny@1.2.3: published as next");
  expect(uploads).toHaveLength(2);
});

test("packages that do not name their repository are published only to a registry on this machine", async () => {
  await pack("tiny-linux-x64", "1", {});
  await expect(publish(tarballs)).rejects.toThrow(
    "tiny-linux-x64: no repository in package.json. Set it before packing: `npm pkg set repository.type=git",
  );
  expect(uploads).toEqual([]);
  await publish(tarballs, { local: {} });
  expect(uploads).toHaveLength(2);
});

test("further flags and the variables of a local registry reach npm", async () => {
  await expect(publish(tarballs, { local: { npm_config_registry: "http://127.0.0.1:1/" } })).rejects.toThrow();
  await publish(tarballs, { flags: ["--tag=other"], local: {} });
  expect(uploads.map((upload) => upload["dist-tags"])).toEqual(names.map(() => ({ other: "1.2.3" })));
});

test("a folder without tarballs is an error", async () => {
  await expect(publish(folder.file("packed-tiny"))).rejects.toThrow("There are no tarballs");
});
