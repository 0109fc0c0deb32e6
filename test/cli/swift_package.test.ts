/** Preparation by `orchard swift` before SwiftPM runs, and packages whose dependencies have URLs. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { headerFlags } from "../../src/cli/swift_module.ts";
import { olderManifest, repairMoved, scratchOf } from "../../src/cli/swift_package.ts";
import { findSwift } from "../../src/cli/toolchain.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const folder = testFolder("swift-package");

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(folder.file(path)), { recursive: true });
    writeFileSync(folder.file(path), text);
  }
}

test.each([
  [[], "/a/.build"],
  [["-c", "release"], "/a/.build"],
  [["--package-path", "b"], "/a/b/.build"],
  [["--package-path=/c"], "/c/.build"],
  [["--scratch-path", "d", "--package-path", "b"], "/a/d"],
  [["--build-path=/e"], "/e"],
])("SwiftPM's folder of %j is %s", (words, scratch) => {
  expect(scratchOf(words, "/a")).toBe(scratch);
});

test.each([
  ["6.0.3", "// swift-tools-version: 6.2\n", "6.2"],
  ["6.0.3", "//swift-tools-version:6.0.4;(experimental)\n", "6.0.4"],
  ["6.0.3", "// Swift-Tools-Version: 999.0\n", "999.0"],
  ["6.0.3", "// swift-tools-version:6.0\n", undefined],
  ["6.2", "// swift-tools-version: 6.2.0\n", undefined],
  ["6.10", "// swift-tools-version: 6.9\n", undefined],
  ["6.0.3", "import PackageDescription // swift-tools-version: 6.2\n", undefined],
])("Swift %s and a manifest that starts with %j require %s", (version, manifest, required) => {
  write({ "tools/Package.swift": manifest });
  const older = olderManifest(version, folder.path, ["-c", "release", "--package-path", "tools"]);
  expect(older?.required).toBe(required);
  write({ "several/Package.swift": manifest, "several/Package@swift-5.9.swift": "" });
  expect(olderManifest(version, folder.file("several"))).toBeUndefined();
});

test("a manifest for an older Swift requires the installed version, and names systems by their numbers", () => {
  const manifest = `// swift-tools-version: 6.2
import PackageDescription
let package = Package(name: "later", platforms: [.macOS(.v26), .iOS(.v17)], targets: [.target(name: "v26")])
`;
  write({ "later/Package.swift": manifest });
  const { path, text, original } = olderManifest("6.0.3", folder.file("later"))!;
  expect([path, original]).toEqual([folder.file("later/Package@swift-6.0.swift"), folder.file("later/Package.swift")]);
  expect(text.split("\n").toSpliced(1, 1)).toEqual([
    "// swift-tools-version:6.0",
    "import PackageDescription",
    'let package = Package(name: "later", platforms: [.macOS("26.0"), .iOS(.v17)], targets: [.target(name: "v26")])',
    "",
  ]);
  writeFileSync(path, text); // left by a process that was killed
  expect(olderManifest("6.0.3", folder.file("later"))?.text).toBe(text);
});

test.skipIf(findSwift() === undefined)(
  "a package that requires a newer Swift is described, and keeps its files",
  () => {
    write({
      "newer/Package.swift": `// swift-tools-version: 99.1
import PackageDescription
let package = Package(name: "newer", platforms: [.macOS(.v26)], targets: [.target(name: "One")])
`,
      "newer/Sources/One/One.swift": "",
    });
    const ran = Bun.spawnSync([...bunWords, join(packageRoot, "src/cli/orchard.ts"), "swift", "package", "describe"], {
      cwd: folder.file("newer"),
    });
    expect(ran.stderr.toString()).toContain("requires Swift 99.1 or newer");
    expect(ran.stdout.toString()).toContain("Name: newer");
    expect(readdirSync(folder.file("newer")).filter((name) => name.endsWith(".swift"))).toEqual(["Package.swift"]);
  },
);

test.skipIf(findSwift() === undefined || process.arch !== "x64")("arm_neon.h is SIMDe's, or an error names it", () => {
  write({
    "neon/code.c": "#include <arm_neon.h>\nint32x4_t value;\n",
    "neon/brought/simde/arm/neon.h":
      "#ifdef SIMDE_ENABLE_NATIVE_ALIASES\ntypedef int int32x4_t __attribute__((vector_size(16)));\n#endif\n",
  });
  const swift = findSwift()!;
  const compile = (...words: string[]) =>
    Bun.spawnSync([
      join(dirname(swift.swiftc), "clang"),
      "-nostdinc",
      "-fsyntax-only",
      ...headerFlags(swift).slice(0, 2),
      ...words,
      folder.file("neon/code.c"),
    ]);
  expect(compile("-idirafter", folder.file("neon/brought")).stderr.toString()).toBe("");
  expect(compile().stderr.toString()).toContain("needs SIMDe: install libsimde-dev");
});

test("after a package was moved it is built again, and its downloads are kept", () => {
  write({ "here/.build/debug/module.pch": "", "here/.build/checkouts/other/file": "" });
  const here = folder.file("here", ".build");
  repairMoved(here);
  repairMoved(here);
  expect(existsSync(join(here, "debug/module.pch"))).toBe(true);
  renameSync(folder.file("here"), folder.file("there"));
  const there = folder.file("there", ".build");
  repairMoved(there);
  expect([existsSync(join(there, "debug")), existsSync(join(there, "checkouts/other/file"))]).toEqual([false, true]);
  write({ "there/.build/debug/module.pch": "" });
  repairMoved(there);
  expect(existsSync(join(there, "debug/module.pch"))).toBe(true);
});

const hasSwift = process.env["ORCHARD_SKIP_METAL"] !== "1" && findSwift() !== undefined && Bun.which("git") !== null;

test.skipIf(!hasSwift)("a dependency with a URL resolves to a folder that is its mirror", () => {
  const url = "https://host.invalid/people/numbers.git";
  const manifest = (rest: string) =>
    `// swift-tools-version:5.9\nimport PackageDescription\nlet package = Package(${rest})\n`;
  write({
    "numbers/Package.swift": manifest(
      'name: "numbers", products: [.library(name: "numbers", targets: ["numbers"])], ' +
        'targets: [.target(name: "numbers")]',
    ),
    "numbers/Sources/numbers/one.swift": "public let one = 1\n",
    "user/Package.swift": manifest(
      `name: "user", dependencies: [.package(url: "${url}", exact: "1.0.0")], targets: [.target(name: "user", ` +
        'dependencies: ["numbers"])]',
    ),
    "user/Sources/user/two.swift": "import numbers\nlet two = one + one\n",
  });
  const run = (cwd: string, ...command: string[]) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: folder.file(cwd) });
    return [exitCode, exitCode === 0 ? "" : stdout.toString() + stderr.toString()];
  };
  const git = (...words: string[]) =>
    run("numbers", "git", "-c", "user.name=a", "-c", "user.email=a@b.invalid", ...words);
  for (const words of [
    ["init", "--quiet"],
    ["add", "."],
    ["commit", "--quiet", "-m", "One"],
    ["tag", "1.0.0"],
  ])
    expect(git(...words)).toEqual([0, ""]);
  const orchard = [...bunWords, join(packageRoot, "src/cli/orchard.ts"), "swift", "package"];
  const mirror = ["config", "set-mirror", "--original", url, "--mirror", folder.file("numbers")];
  expect(run("user", ...orchard, ...mirror)).toEqual([0, ""]);
  expect(run("user", ...orchard, "resolve")).toEqual([0, ""]);
  expect(existsSync(folder.file("user/.build/checkouts/numbers/Sources/numbers/one.swift"))).toBe(true);
});
