/** `bun run clean` removes the outputs of builds, and nothing else. */
import { expect, spyOn, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { builtFolders, clean } from "../../scripts/clean.ts";
import { Failure } from "../../scripts/failure.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("clean");
const sources = ["src/index.ts", "swift/Package.swift", "native/cpu/a.cpp", "runs/last/checkpoint", "build.ts"];

/** A clone with sources, a run and the outputs of builds, and the caches. */
function makeClone(name: string) {
  const root = folder.file(`${name}/clone`);
  const caches = folder.file(`${name}/caches`);
  const built = builtFolders.map((own) => join(own, "nested", "file"));
  const paths = [...[...sources, ...built].map((path) => join(root, path)), join(caches, "objects", "file")];
  for (const path of paths) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "");
  }
  return { root, caches };
}

async function cleaned(name: string, words: readonly string[]) {
  const { root, caches } = makeClone(name);
  const log = spyOn(console, "log").mockImplementation(() => undefined);
  try {
    await clean(words, root, caches);
    await clean(words, root, caches); // the second call has nothing to remove
  } finally {
    log.mockRestore();
  }
  expect(sources.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  expect(builtFolders.filter((own) => existsSync(join(root, own)))).toEqual([]);
  return existsSync(caches);
}

test("the outputs of builds are removed; sources, runs and caches stay", async () =>
  expect(await cleaned("plain", [])).toBe(true));

test("--caches removes the caches too", async () => expect(await cleaned("caches", ["--caches"])).toBe(false));

test("an unknown argument removes nothing", async () => {
  const { root, caches } = makeClone("unknown");
  await expect(clean(["--cache"], root, caches)).rejects.toThrow(Failure);
  expect(builtFolders.filter((own) => !existsSync(join(root, own)))).toEqual([]);
});

test("git ignores every folder that it removes", () => {
  const { stdout } = Bun.spawnSync(["git", "check-ignore", ...builtFolders.map((own) => `${own}/file`)], {
    cwd: packageRoot,
  });
  expect(stdout.toString().trim().split("\n")).toHaveLength(builtFolders.length);
});
