import { describe, expect, test } from "bun:test";
import { copyFileSync, cpSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packagedModule, platformModule } from "../../../scripts/release/assets.ts";
import { library, libraryCandidates, loadLibrary } from "../../../src/backend/metal/loader.ts";
import { cachedToolchains } from "../../../src/cli/toolchain.ts";
import { BackendError } from "../../../src/core/errors.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";

const { path: folder } = testFolder("loader");
const failure = (path: string): BackendError => {
  try {
    loadLibrary([{ origin: "ORCHARD_LIBRARY", path }]);
  } catch (error) {
    if (error instanceof BackendError) return error;
    throw error;
  }
  throw new Error(`${path} was loaded`);
};

describe("the dylib is found, and its version is checked", () => {
  test("ORCHARD_LIBRARY, if set, is the only path that is tried", () => {
    expect(libraryCandidates({ ORCHARD_LIBRARY: "/some/lib.so" })).toEqual([
      { origin: "ORCHARD_LIBRARY", path: "/some/lib.so" },
    ]);
    expect(libraryCandidates({}).at(-1)?.origin).toBe("bundled");
  });

  test("the platform package's dylib precedes the bundled one", async () => {
    const name = `orchard-metal-${process.platform}-${process.arch}`;
    const file = process.platform === "darwin" ? "libOrchardMetal.dylib" : "libOrchardMetal.so";
    const installed = join(folder, "installed");
    cpSync(join(packageRoot, "src"), join(installed, "src"), { recursive: true });
    cpSync(join(packageRoot, "package.json"), join(installed, "package.json"));
    await Bun.write(join(installed, "node_modules", name, "package.json"), `{ "name": "${name}", "version": "1.0.0" }`);
    await Bun.write(join(installed, "node_modules", name, file), "");
    await Bun.write(join(installed, "node_modules", name, "index.js"), platformModule([file]));
    await Bun.write(join(installed, "src", "core", "packaged.ts"), packagedModule("orchard-metal"));
    const program = `import { libraryCandidates } from "./src/backend/metal/loader.ts";
      console.log(JSON.stringify(libraryCandidates({}).map(({ origin, path }) => [origin, path])));`;
    const { stdout } = Bun.spawnSync([...bunWords, "-e", program], { cwd: installed });
    const candidates = JSON.parse(stdout.toString()) as [string, string][];
    expect(candidates.map(([origin]) => origin)).toEqual(["platform package", "bundled"]);
    expect(candidates[0]?.[1]).toEndWith(join("node_modules", name, file));
  });

  test("the error for a missing dylib names it and the command that builds it", () => {
    const error = failure(join(folder, "missing.so"));
    expect([error.code, error.message]).toEqual([
      "libraryMissing",
      expect.stringMatching(/missing\.so.*bun run build/),
    ]);
  });

  test("a file that is not a library is rejected", () => {
    const path = join(folder, "text.so");
    writeFileSync(path, "not a library");
    expect(failure(path).code).toBe("libraryUnusable");
  });

  test("a truncated library is rejected", () => {
    const path = join(folder, "short.so");
    copyFileSync(library().path, path);
    truncateSync(path, 5000);
    expect(failure(path).code).toBe("libraryUnusable");
  });

  test("a library of another version of the interface is rejected", async () => {
    const path = join(folder, "other.so");
    await compile("int orchard_abi_version(void) { return 99; }", path);
    const error = failure(path);
    expect([error.code, error.message]).toEqual([
      "abiMismatch",
      expect.stringMatching(/expected .* version 2 of orchard\.h, got version 99;.*ORCHARD_LIBRARY/),
    ]);
  });

  test("a library that is not Orchard's is rejected", async () => {
    const path = join(folder, "else.so");
    await compile("int something_else(void) { return 1; }", path);
    expect(failure(path).code).toBe("libraryUnusable");
  });
});

/**
 * Any C compiler will do; the tests' machine has one, since the dylib was built there. On Linux no C library is linked,
 * since the toolchain from `bun run setup` has none; Apple's linker requires the system's in every dylib.
 */
async function compile(source: string, path: string): Promise<void> {
  const file = join(folder, "source.c");
  writeFileSync(file, source);
  const own = ["cc", "clang", "gcc"].map((name) => Bun.which(name)).find((found) => found !== null);
  const brought = cachedToolchains().map((toolchain) => join(toolchain, "usr/libexec/swift/bin/clang"))[0];
  const compiler = own ?? brought;
  if (!compiler) throw new Error("no C compiler: install one, or run `bun run setup`");
  const options = [
    ...(process.platform === "darwin" ? [] : ["-nostdlib"]),
    ...(compiler === brought ? ["-fuse-ld=lld"] : []),
  ];
  const result = Bun.spawnSync([compiler, "-shared", "-fPIC", ...options, "-o", path, file]);
  if (result.exitCode !== 0) throw new Error(result.stderr.toString());
}
