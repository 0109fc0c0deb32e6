/** What ELF files say of themselves, and which package's dylib a process loads for its C library. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as fc from "fast-check";
import { interpreterOf, librariesOf, truncation } from "../../src/backend/elf.ts";
import { packagePlatformOf } from "../../src/backend/library.ts";
import { buildFolder, cpuLibraryName, platform } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("elf");
let count = 0;

interface Made {
  readonly interpreter?: string | undefined;
  readonly libraries?: readonly string[];
  /** Bytes between the parts. */
  readonly gap: number;
  /** The address at which the file is mapped. */
  readonly base: number;
}

/** Writes an ELF file with a table of segments, an interpreter, strings and dynamic entries. */
async function elf({ interpreter, libraries = [], gap, base }: Made): Promise<string> {
  const parts: { bytes: Uint8Array; type: number; at: number }[] = [];
  let end = 64 + 3 * 56 + gap;
  const add = (bytes: Uint8Array, type: number) => {
    parts.push({ bytes, type, at: end });
    end += bytes.length + gap;
    return end - bytes.length - gap;
  };
  const text = (own: string) => new TextEncoder().encode(`${own}\0`);
  if (interpreter !== undefined) add(text(interpreter), 3);
  const strings = add(text(["", ...libraries].join("\0")), 0);
  const names = libraries.map((_, at) => 1 + libraries.slice(0, at).reduce((sum, own) => sum + own.length + 1, 0));
  const entries = [...names.map((name) => [1, name]), [5, base + strings], [0, 0]].flat();
  add(new Uint8Array(BigUint64Array.from(entries, BigInt).buffer), 2);
  const file = new Uint8Array(end);
  const view = new DataView(file.buffer);
  view.setUint32(0, 0x7f454c46);
  view.setBigUint64(32, 64n, true);
  const segments = [{ type: 1, at: 0, bytes: file }, ...parts.filter(({ type }) => type > 0)];
  view.setUint16(56, segments.length, true);
  for (const [index, { type, at, bytes }] of segments.entries()) {
    const start = 64 + 56 * index;
    view.setUint32(start, type, true);
    for (const [offset, value] of [[8, at], [16, base + at], [32, bytes.length]] as const) // biome-ignore format: rows
      view.setBigUint64(start + offset, BigInt(value), true);
  }
  for (const { bytes, at } of parts) file.set(bytes, at);
  const path = folder.file(`${count++}.elf`);
  await Bun.write(path, file);
  return path;
}

const name = fc.stringMatching(/^[a-z][a-z.+_-]{0,20}$/);
const made = fc.record({
  interpreter: fc.option(name, { nil: undefined }),
  libraries: fc.array(name, { maxLength: 4 }),
  gap: fc.nat(40),
  base: fc.constantFrom(0, 0x200000, 0x7fff0000),
});

test("drawn files: their interpreter and their libraries, and where they are cut", async () => {
  await fc.assert(
    fc.asyncProperty(made, fc.nat(200), async (own, cut) => {
      const path = await elf(own);
      expect(interpreterOf(path)).toBe(own.interpreter);
      expect(librariesOf(path)).toEqual(own.libraries);
      expect(truncation(path)).toBeUndefined();
      const bytes = await Bun.file(path).bytes();
      const shorter = folder.file(`${count++}.cut`);
      await Bun.write(shorter, bytes.subarray(0, Math.max(64, bytes.length - 1 - cut)));
      expect(truncation(shorter)).toContain("truncated");
    }),
    { numRuns: 50, seed: 4 },
  );
});

describe("a process loads the dylib of its C library", () => {
  test.each([
    ["/lib64/ld-linux-x86-64.so.2", platform],
    ["/lib/ld-linux-aarch64.so.1", platform],
    ["/lib/ld-musl-x86_64.so.1", `${platform}-musl`],
    ["/lib/ld-musl-aarch64.so.1", `${platform}-musl`],
    ["/nix/store/0-musl/lib/ld-musl-x86_64.so.1", `${platform}-musl`],
    [undefined, platform], // it is linked statically
  ])("interpreter %s: %s", async (interpreter, expected) => {
    expect(packagePlatformOf(await elf({ interpreter, gap: 3, base: 0 }))).toBe(expected);
  });

  test("musl's loader, run with the program as its argument", () => {
    expect(packagePlatformOf("/lib/ld-musl-x86_64.so.1")).toBe(`${platform}-musl`);
  });

  test("a program that can't be read", () => {
    expect(packagePlatformOf(folder.file("nothing"))).toBe(platform);
  });
});

test.if(process.platform === "linux")("the dylib of this build, and this program", () => {
  expect(
    librariesOf(join(buildFolder, cpuLibraryName)).some((own) => /^(libc\.so\.6|libm\.so\.6|libc\.so)$/.test(own)),
  ).toBe(true);
  expect(interpreterOf(process.execPath)).toMatch(/\/ld-(linux|musl)-/);
});

test("another file has neither", async () => {
  const path = folder.file("text");
  await Bun.write(path, "no program\n".repeat(20));
  expect([interpreterOf(path), librariesOf(path), truncation(path)]).toEqual([undefined, [], undefined]);
});
