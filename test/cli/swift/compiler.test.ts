/** The wrapper of `swiftc` for Linux, around a compiler that prints its arguments. */
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pluginCompiler, testingCompiler } from "../../../src/cli/swift_compiler.ts";
import { withVariables } from "../../support/environment.ts";
import { testFolder } from "../../support/folder.ts";

const { path: folder } = testFolder("swift-compiler");
const printer = join(folder, "it's", "bin", "swiftc");
mkdirSync(join(folder, "it's", "bin"), { recursive: true });
writeFileSync(printer, '#!/bin/sh\nfor word; do echo "$word"; done\n');
chmodSync(printer, 0o755);

let count = 0;

/** Returns the arguments that the compiler gets beyond the given ones, for files with these texts. */
function added(asList: boolean, ...texts: string[]): string[] {
  const at = join(folder, `module ${count++}`);
  mkdirSync(at);
  const paths = texts.map((text, index) => {
    writeFileSync(join(at, `file ${index}.swift`), text);
    return join(at, `file ${index}.swift`);
  });
  writeFileSync(join(at, "sources"), paths.map((path) => `'${path}'\n`).join(""));
  const words = ["-c", ...(asList ? [`@${join(at, "sources")}`] : paths)];
  using _ = withVariables({ XDG_CACHE_HOME: join(folder, "cache") });
  const { stdout } = Bun.spawnSync([testingCompiler(printer), ...words]);
  const all = stdout.toString().trim().split("\n");
  expect(all.slice(0, words.length)).toEqual(words);
  return all.slice(words.length);
}

const names = ["-Xfrontend", "-import-module", "-Xfrontend", "OrchardDarwin"];
const alias = (name: string) => ["-module-alias", `${name}=Orchard${name}`];

test.each([
  ["import Darwin\n", [...alias("Darwin"), ...names]],
  ["@preconcurrency  import Darwin.Mach\n", [...alias("Darwin"), ...names]],
  ["\timport func Darwin.sqrt // a root\n", [...alias("Darwin"), ...names]],
  ["#if os(macOS)\n  import Darwin\n#endif\nlet a = 1\n", []],
  ["#if DEBUG\n#endif\nimport Darwin", [...alias("Darwin"), ...names]],
  [
    "#if canImport(Darwin)\nimport Darwin\n#else\nimport Glibc\n#endif\nimport CommonCrypto\n",
    [...alias("CommonCrypto"), ...names],
  ],
  ["import DarwinKit\nimport Foundation\n", []],
  ["// import Darwin\n", []],
  ["import simd\n", names],
  ["import os.log\nimport Darwin\nimport CommonCrypto\n", [...alias("CommonCrypto"), ...alias("Darwin"), ...names]],
])("%j adds %j", (text, expected) => {
  expect(added(true, text)).toEqual(expected);
  expect(added(false, text)).toEqual(expected);
  // an import in one file of a module suffices; a condition of one file does not affect the next
  expect(added(true, "#if DEBUG\n", text, "let b = 2\n")).toEqual(expected);
});

test("a module that imports XCTest sees Metal and QuartzCore", () => {
  const modules = ["Metal", "QuartzCore"].flatMap((name) => ["-Xfrontend", "-import-module", "-Xfrontend", name]);
  expect(added(true, "let a = 1\n", "import XCTest\n")).toEqual(modules);
});

test("only plugins get the modules' flags", () => {
  using _ = withVariables({ XDG_CACHE_HOME: join(folder, "cache") });
  const run = (...words: string[]) =>
    Bun.spawnSync([pluginCompiler(printer, printer, ["-I", "a folder"]), ...words])
      .stdout.toString()
      .trim()
      .split("\n");
  expect(run("-lPackageDescription", "Package.swift")).toEqual(["-lPackageDescription", "Package.swift"]);
  expect(run("-lPackagePlugin", "plugin.swift")).toEqual(["-lPackagePlugin", "plugin.swift", "-I", "a folder"]);
});
