/** Files of builds, cached by their inputs. */
import { expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ContentCache, contentKey, contentOf } from "../../scripts/content_cache.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("content-cache");
const write = (name: string, text: string): string => {
  writeFileSync(folder.file(name), text);
  return folder.file(name);
};

test("a key depends on how text is divided into parts, and on empty parts", () => {
  const keys = [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["ä", "c"]].map(contentKey);
  expect(new Set(keys).size).toBe(keys.length);
  expect(contentKey([Buffer.from("ab"), "c"])).toBe(keys[0]);
});

test("stored files are restored, with their modes, and nothing else", () => {
  const cache = new ContentCache("restored", 1e6, folder.file("."));
  const [from, to] = [write("program", "text"), folder.file("copy")];
  chmodSync(from, 0o755);
  expect(cache.restore(contentKey(["one"]), to)).toBe(false);
  expect(existsSync(to)).toBe(false);
  expect(cache.has(contentKey(["one"]))).toBe(false);
  cache.store(contentKey(["one"]), from);
  expect(cache.has(contentKey(["one"]))).toBe(true);
  expect(cache.restore(contentKey(["one"]), to)).toBe(true);
  expect(readFileSync(to, "utf8")).toBe("text");
  expect(Bun.spawnSync(["test", "-x", to]).exitCode).toBe(0);
  expect(cache.restore(contentKey(["two"]), folder.file("other"))).toBe(false);
});

test("over the limit, the least recently used entry is removed first", () => {
  const cache = new ContentCache("trimmed", 25, folder.file("."));
  const keys = ["one", "two", "three"].map((name) => contentKey([name]));
  for (const [at, key] of keys.entries()) {
    cache.store(key, write("ten", "0123456789"));
    const path = join(cache.folder, key.slice(0, 2), key.slice(2));
    utimesSync(path, 1000 + at, 1000 + at);
  }
  expect(cache.restore(keys[0], folder.file("used"))).toBe(true); // this makes it the newest
  cache.trim();
  expect(keys.map((key) => cache.restore(key, folder.file("used")))).toEqual([true, false, true]);
});

test("a cache that can't be written is left unchanged", () => {
  const cache = new ContentCache("file", 1e6, write("file-in-the-way", ""));
  cache.store(contentKey(["one"]), write("program", "text"));
  cache.trim();
  expect(cache.restore(contentKey(["one"]), folder.file("none"))).toBe(false);
});

test("a file is read again after it changed", () => {
  const path = write("changing", "one");
  expect(contentOf(path)?.toString()).toBe("one");
  write("changing", "three");
  expect(contentOf(path)?.toString()).toBe("three");
  expect(contentOf(folder.file("missing"))).toBeUndefined();
});
