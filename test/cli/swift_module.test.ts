/** Inputs of a build of the Swift package, and its folder. */
import { expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { claimScratch, packageKey } from "../../src/cli/swift_module.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("swift-module");
const toolchain: SwiftToolchain = {
  origin: "cache",
  swift: "swift",
  swiftc: "swiftc",
  version: "6.0.3",
  sysroot: undefined,
  environment: {},
  buildFlags: [],
  compilerFlags: [],
  programFlags: [],
};
const files = [
  "Package.swift",
  "Sources/Metal/Device.swift",
  "Sources/MetalRuntime/metal/mrt/prelude.h",
  "Tests/A.swift",
];

function writePackage(name: string): string {
  for (const file of files) {
    mkdirSync(dirname(folder.file(name, file)), { recursive: true });
    writeFileSync(folder.file(name, file), `// ${file}\n`);
  }
  return folder.file(name);
}

test("the key depends on the contents of the files, not on their folder and time", () => {
  const [one, other] = [writePackage("one"), writePackage("other")];
  utimesSync(join(other, files[1]), 1000, 1000);
  expect(packageKey(toolchain, one)).toBe(packageKey(toolchain, other));
});

test("the key changes if a file changes or is added, and with the compiler and its flags", () => {
  const plain = writePackage("plain");
  const keys = [packageKey(toolchain, plain)];
  for (const file of [...files, "Sources/Metal/New.swift"]) {
    const changed = folder.file("changed");
    cpSync(plain, changed, { recursive: true });
    writeFileSync(join(changed, file), "// changed\n");
    keys.push(packageKey(toolchain, changed));
    renameSync(changed, folder.file(`changed-${keys.length}`));
  }
  keys.push(packageKey({ ...toolchain, version: "6.1" }, plain));
  keys.push(packageKey({ ...toolchain, buildFlags: ["-Xcxx", "-O1"] }, plain));
  expect(new Set(keys).size).toBe(keys.length);
});

test("SwiftPM's folder is emptied if it was created for another path, and kept otherwise", () => {
  const scratch = folder.file("here", ".build");
  claimScratch(scratch);
  writeFileSync(join(scratch, "cache.pcm"), "");
  claimScratch(scratch);
  expect(existsSync(join(scratch, "cache.pcm"))).toBe(true);
  renameSync(folder.file("here"), folder.file("moved"));
  const moved = folder.file("moved", ".build");
  claimScratch(moved);
  expect(existsSync(join(moved, "cache.pcm"))).toBe(false);
});
