/** The interpreter and libraries of ELF files, and which package's dylib a process loads for its C library. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as fc from "fast-check";
import { interpreterOf, librariesOf, truncation } from "../../src/backend/elf.ts";
import { packagePlatformOf } from "../../src/backend/library.ts";
import { buildFolder, cpuLibraryName, platform } from "../../src/core/paths.ts";
import { elf, type Made } from "../support/elf.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("elf");
let count = 0;

async function written(made: Made): Promise<string> {
  const path = folder.file(`${count++}.elf`);
  await Bun.write(path, elf(made));
  return path;
}

const name = fc.stringMatching(/^[a-z][a-z.+_-]{0,20}$/);
const made = fc.record({
  interpreter: fc.option(name, { nil: undefined }),
  libraries: fc.array(name, { maxLength: 4 }),
  gap: fc.nat(40),
  base: fc.constantFrom(0, 0x200000, 0x7fff0000),
});

test("generated files: the interpreter and libraries are read, and truncation is detected", async () => {
  await fc.assert(
    fc.asyncProperty(made, fc.nat(200), async (own, cut) => {
      const path = await written(own);
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
    [undefined, platform], // a static program has no interpreter
  ])("interpreter %s means the C library %s", async (interpreter, expected) => {
    expect(packagePlatformOf(await written({ interpreter, gap: 3 }))).toBe(expected);
  });

  test("a program run through musl's loader uses musl", () => {
    expect(packagePlatformOf("/lib/ld-musl-x86_64.so.1")).toBe(`${platform}-musl`);
  });

  test("glibc is assumed for an unreadable program", () => {
    expect(packagePlatformOf(folder.file("nothing"))).toBe(platform);
  });
});

test.if(process.platform === "linux")("the dylib of this build needs a C library, and Bun an interpreter", () => {
  expect(
    librariesOf(join(buildFolder, cpuLibraryName)).some((own) => /^(libc\.so\.6|libm\.so\.6|libc\.so)$/.test(own)),
  ).toBe(true);
  expect(interpreterOf(process.execPath)).toMatch(/\/ld-(linux|musl)-/);
});

test("a file of another format has no interpreter and no libraries", async () => {
  const path = folder.file("text");
  await Bun.write(path, "no program\n".repeat(20));
  expect([interpreterOf(path), librariesOf(path), truncation(path)]).toEqual([undefined, [], undefined]);
});
