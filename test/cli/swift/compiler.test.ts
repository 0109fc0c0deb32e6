/** The wrapper of `swiftc` for Linux, around a compiler that prints its arguments. */
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { emptyModules, pluginCompiler, testingCompiler } from "../../../src/cli/swift_compiler.ts";
import { withVariables } from "../../support/environment.ts";
import { testFolder } from "../../support/folder.ts";

const { path: folder } = testFolder("swift-compiler");
const printer = join(folder, "it's", "bin", "swiftc");
mkdirSync(join(folder, "it's", "bin"), { recursive: true });
const listing = '#!/bin/sh\nfor word; do echo "$word"; done\n';
writeFileSync(printer, listing);
chmodSync(printer, 0o755);

let count = 0;

/** Returns the arguments that the compiler gets beyond the given ones, for files with these texts. */
function added(asList: boolean, ...texts: string[]): string[] {
  const at = join(folder, `module ${count++}`);
  mkdirSync(at, { recursive: true });
  const paths = texts.map((text, index) => {
    writeFileSync(join(at, `file ${index}.swift`), text);
    return join(at, `file ${index}.swift`);
  });
  writeFileSync(join(at, "sources"), paths.map((path) => `'${path}'\n`).join(""));
  const words = ["-c", "-module-name", "Views", ...(asList ? [`@${join(at, "sources")}`] : paths)];
  using _ = withVariables({ XDG_CACHE_HOME: join(folder, "cache") });
  const { stdout } = Bun.spawnSync([testingCompiler(printer), ...words], { env: process.env });
  const all = stdout.toString().trim().split("\n");
  expect(all.slice(0, words.length)).toEqual(words);
  return all.slice(words.length);
}

const names = ["OrchardDarwin", "OrchardCoreFoundation", "CoreGraphics"].flatMap((name) => [
  "-Xfrontend",
  "-import-module",
  "-Xfrontend",
  name,
]);
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
  [
    "import os.log\nimport Darwin\nimport CommonCrypto\n",
    [...alias("CommonCrypto"), ...alias("Darwin"), ...alias("os"), ...names],
  ],
  ["#if canImport(os)\nimport os\n#endif\n", []],
  ["#if canImport(Metal)\nimport Metal\n#endif\n", names],
  ["#if canImport(Metal)\nlet a = 1\n#else\nimport simd\n#endif\n", []],
  ["#if os(iOS)\nimport Metal\n#endif\n", []],
  ["#if !os(macOS)\nimport Metal\n#endif\n", []],
  ["#if canImport(Metal) && DEBUG\nimport Metal\n#endif\n", []],
  ["internal import os\n", [...alias("os"), ...names]],
  ["import SwiftUI\n", [...alias("SwiftUI"), ...names]],
  ["#if canImport(SwiftUI)\nimport SwiftUI\n#endif\n", []],
])("a module with the line %j is compiled with the flags %j", (text, expected) => {
  expect(added(true, text)).toEqual(expected);
  expect(added(false, text)).toEqual(expected);
  // an import in one file of a module suffices; a condition of one file does not affect the next
  expect(added(true, "#if DEBUG\n", text, "let b = 2\n")).toEqual(expected);
});

/** Returns the copies that the compiler reads in place of a module's files, or undefined if it reads the files. */
function readInstead(...texts: string[]): string[] | undefined {
  const words = added(true, ...texts);
  const at = words.indexOf("-vfsoverlay");
  if (at < 0) return undefined;
  const overlay = JSON.parse(readFileSync(words[at + 1], "utf8")) as {
    roots: { name: string; "external-contents": string }[];
  };
  expect(overlay.roots.map(({ name }) => readFileSync(name, "utf8"))).toEqual(texts);
  return overlay.roots.map((root) => readFileSync(root["external-contents"], "utf8"));
}

test("Bundle.module is the folder of .metal files that the manifest does not declare", () => {
  const uses = "import Metal\nlet bundle = Bundle.module\n";
  expect(readInstead(uses, "import Metal\n")).toBeUndefined(); // no .metal file
  const at = join(folder, `module ${count}`);
  mkdirSync(join(at, "Shaders"), { recursive: true });
  writeFileSync(join(at, "Shaders", "a.metal"), "");
  const [first, second] = readInstead(uses, mac)!;
  expect(first).toStartWith(uses);
  expect(first).toContain(`extension Foundation.Bundle { static let module = Bundle(path: "${at}")! }`);
  expect(second).toBe(mac.replace("os(macOS)", "swift(>=5)"));
  mkdirSync(join(folder, `module ${count}`, "Shaders"), { recursive: true });
  writeFileSync(join(folder, `module ${count}`, "Shaders", "a.metal"), "");
  // this file also runs on Linux
  expect(readInstead("import Foundation\nlet bundle = Bundle.module\n")).toBeUndefined();
});

const mac = "#if os(macOS)\nlet system = 1\n#elseif os(iOS)\nlet system = 2\n#endif\n";

test("a module for Apple's systems is compiled as on macOS, with the same line numbers", () => {
  const other = "  #if DEBUG || !os(macOS) && os(OSX)\n#endif\n// os(macOS)\n";
  const yes = "swift(>=5)";
  expect(readInstead("import Metal\n", mac, other)).toEqual([
    "import Metal\n",
    mac.replace("os(macOS)", yes),
    `  #if DEBUG || !${yes} && ${yes}\n#endif\n// os(macOS)\n`,
  ]);
  expect(readInstead(`import Metal\n#if os(macOS)\nimport IOKit\n#else\nimport UIKit\n#endif\n${mac}`)).toBeDefined();
  expect(readInstead("#if os(iOS) || os(macOS)\nimport Metal\nlet a = 1\n#endif\n")).toEqual([
    `#if os(iOS) || ${yes}\nimport Metal\nlet a = 1\n#endif\n`,
  ]);
  expect(readInstead("#if os(macOS)\nimport Darwin\n#endif\n")).toBeUndefined(); // may also run on Linux
});

test("a module for Apple's systems is compiled without the attributes of Objective-C", () => {
  const text =
    "import Metal\n@objc(Rule) public class A: NSObject {\n  @objc\n  func f() {}\n  @nonobjc var a = 1\n}\n";
  expect(readInstead(text, "@objcMembers class B {}\n")).toEqual([
    "import Metal\npublic class A: NSObject {\n  \n  func f() {}\n  var a = 1\n}\n",
    "class B {}\n",
  ]);
  expect(readInstead("import Foundation\n@objc class A {}\n")).toBeUndefined();
});

test("type parameters need not be classes, if the compiler rejects a protocol of Metal as one", () => {
  const text =
    "import Metal\nprotocol Block: AnyObject { associatedtype Wrapped: AnyObject }\n" +
    "func f<T: AnyObject, U>(_ t: T) {}\n";
  const known = "type 'A' does not conform to protocol 'Block'";
  writeFileSync(printer, `${listing}case "$*" in *-vfsoverlay*) ;; *) echo "${known}" >&2; exit 1 ;; esac\n`);
  try {
    expect(readInstead(text)).toEqual([
      "import Metal\nprotocol Block: AnyObject { associatedtype Wrapped }\nfunc f<T, U>(_ t: T) {}\n",
    ]);
    writeFileSync(printer, `${listing}exit 1\n`); // the compiler fails for another reason
    expect(readInstead(text)).toBeUndefined();
  } finally {
    writeFileSync(printer, listing);
  }
  expect(readInstead(text)).toBeUndefined();
});

test.each([
  ["imports nothing of Apple's", "import Foundation\n"],
  ["imports Metal where it exists", "#if canImport(Metal)\nimport Metal\n#endif\n"],
  ["knows Linux", "import Metal\n#if os(Linux)\n#endif\n"],
  ["knows Glibc", "import Metal\n#if canImport(Glibc)\n#endif\n"],
  ["imports a missing module on macOS", "import Metal\n#if os(macOS)\nimport AppKit\n#endif\n"],
])("a module that %s is compiled as on Linux", (_, text) => {
  expect(readInstead(text, mac)).toBeUndefined();
});

test("a module that imports XCTest sees Metal and QuartzCore", () => {
  const modules = ["Metal", "QuartzCore"].flatMap((name) => ["-Xfrontend", "-import-module", "-Xfrontend", name]);
  expect(added(true, "let a = 1\n", "import XCTest\n")).toEqual(modules);
});

test("a module that the tests leave out is compiled from empty files", () => {
  const texts = ["import SwiftUI\nimport XCTest\nstruct A: View {}\n", "import AppKit\n"];
  const cases: readonly (readonly [list: string, expected: string[] | undefined])[] = [
    ["Charts Views", ["", ""]],
    ["ViewsTests Vie", undefined],
    ["", undefined],
  ];
  for (const [list, expected] of cases) {
    using _ = withVariables({ [emptyModules]: list });
    expect(readInstead(...texts)).toEqual(expected);
  }
});

test("only plugins get the modules' flags", () => {
  using _ = withVariables({ XDG_CACHE_HOME: join(folder, "cache") });
  const run = (...words: string[]) =>
    Bun.spawnSync([pluginCompiler(printer, printer, ["-I", "a folder"]), ...words])
      .stdout.toString()
      .trim()
      .split("\n");
  expect(run("-lPackageDescription", "Package.swift")).toEqual(["-lPackageDescription", "Package.swift"]);
  expect(run("-lPackagePlugin", "plugin.swift")).toEqual([
    "-lPackagePlugin",
    "plugin.swift",
    "-module-alias",
    "os=Orchardos",
    "-I",
    "a folder",
  ]);
});
