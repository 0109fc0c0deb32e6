/** How the cpu backend's dylib is built: which objects there are, in which order, and when one is made anew. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCompiler } from "../../scripts/cpu/compiler.ts";
import { dependencies, isOutOfDate, objectFiles, objectName } from "../../scripts/cpu/objects.ts";

const folder = mkdtempSync(join(tmpdir(), "orchard-objects-"));
const compiler = { command: ["c++"], linkFlags: [], version: "1", isClang: false };

describe("objects", () => {
  test("a file for every instruction set is compiled once for each, and the plainest are linked first", () => {
    mkdirSync(join(folder, "kernels"), { recursive: true });
    for (const name of ["plain.cpp", "kernels/add.isa.cpp"]) writeFileSync(join(folder, name), "");
    const objects = objectFiles(folder, "/objects", compiler);
    const sets = process.arch === "x64" ? ["baseline", "avx2", "avx512"] : ["neon"];
    expect(objects.map(objectName)).toEqual([`plain.${sets[0]}`, ...sets.map((set) => `kernels.add.isa.${set}`)]);
    for (const [index, { flags }] of objects.slice(1).entries())
      expect(flags).toContain(`-DORCHARD_ISA=${sets[index]}`);
  });

  test("a compiler's list of prerequisites, over lines and with spaces in names", () => {
    expect(dependencies("a.o: one.cpp \\\n two.h /with\\ space/three.h\n")).toEqual([
      "one.cpp",
      "two.h",
      "/with space/three.h",
    ]);
  });

  test("one is out of date where a file is newer or gone, the command is another, or it is not there", () => {
    const [source, header, path] = ["s.cpp", "h.h", "s.o"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const object = { source, path, flags: [] };
    expect(isOutOfDate(object, "c++")).toBe(true);
    for (const file of [source, header, path]) writeFileSync(file, "");
    writeFileSync(`${path}.d`, `${path}: ${source} ${header}\n`);
    writeFileSync(`${path}.command`, "c++");
    const at = (file: string, seconds: number) => utimesSync(file, seconds, seconds);
    for (const [index, file] of [source, header, path].entries()) at(file, 1000 + index);
    expect(isOutOfDate(object, "c++")).toBe(false);
    expect(isOutOfDate(object, "clang++")).toBe(true);
    at(header, 2000);
    expect(isOutOfDate(object, "c++")).toBe(true);
    rmSync(header);
    expect(isOutOfDate(object, "c++")).toBe(true);
  });
});

test("the machine's compiler is found and says its version", async () => {
  const { version, isClang } = await findCompiler();
  expect(version).toMatch(/\d+\.\d+/);
  expect(isClang).toBe(/clang/i.test(version));
});
