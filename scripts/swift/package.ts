/**
 * Builds the Swift package once: the dylib and the tests share objects, compiled for release with `-enable-testing`.
 * Products are cached by the content of the sources, for all clones.
 */
import { existsSync } from "node:fs";
import { cp, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type RunResult, run, runOrFail } from "../../src/cli/run.ts";
import {
  claimScratch,
  keepModules,
  moduleFiles,
  moduleFolder,
  packageFlags,
  packageKey,
  swiftFolder,
} from "../../src/cli/swift_module.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { libraryName } from "../../src/core/paths.ts";
import { ContentCache, contentKey } from "../content_cache.ts";
import { Failure } from "../failure.ts";

const scratch = join(swiftFolder, ".build");

/** The output folder of SwiftPM. */
const built = join(scratch, "release");

/** The folder of up-to-date products, whether built here or restored from the cache. */
const products = join(scratch, "products");

/** The tests' program, on Linux. */
export const testProgram: string = join(products, "OrchardPackageTests.xctest");

/** The products of all clones on the machine. The dylib and the tests take 90 MB together. */
const cache = new ContentCache("swift/products", 600e6);

interface Product {
  readonly name: "library" | "tests";
  /** Names in the folder of products. */
  readonly files: readonly string[];
  readonly build: (swift: SwiftToolchain) => Promise<void>;
}

const library: Product = {
  name: "library",
  files: [libraryName],
  build: async (swift) => {
    await swiftBuild(swift, "--product", "OrchardMetal");
    await mkdir(products, { recursive: true });
    if (process.platform === "linux") await linkStatically(swift, join(products, libraryName));
    else await cp(join(built, libraryName), join(products, libraryName));
  },
};

/** With the modules: a test reads their public symbols, and `orchard swift` links programs with them. */
const tests: Product = {
  name: "tests",
  files: ["OrchardPackageTests.xctest", ...(process.platform === "linux" ? moduleFiles : [])],
  build: async (swift) => {
    if (process.platform === "darwin") await requireXCTest();
    // The archiver only adds and replaces, so a new archive is created to drop deleted source files.
    await rm(join(built, "libMetal.a"), { force: true });
    await swiftBuild(swift, "--build-tests");
    await mkdir(products, { recursive: true });
    for (const name of tests.files) await cp(join(built, name), join(products, name), { recursive: true });
  },
};

/** Builds the dylib, or takes it from the cache, and returns its path. */
export async function buildDylib(swift: SwiftToolchain): Promise<string> {
  await bring(library, swift);
  return join(products, libraryName);
}

/** Builds the tests and, on Linux, the modules of `orchard swift`, or takes them from the cache. */
export async function buildTests(swift: SwiftToolchain): Promise<void> {
  const folder = moduleFolder(swift); // before the build, during which a file may change
  await bring(tests, swift);
  if (process.platform === "linux") keepModules(products, folder);
}

async function bring(product: Product, swift: SwiftToolchain): Promise<void> {
  const key = contentKey([packageKey(swift), product.name, ...product.files]);
  const stamp = Bun.file(join(products, `${product.name}.key`));
  const paths = product.files.map((name) => join(products, name));
  if (paths.every(existsSync) && (await stamp.exists()) && (await stamp.text()) === key) return;
  claimScratch(scratch);
  for (const path of [stamp.name!, ...paths]) await rm(path, { recursive: true, force: true });
  if (!(await restore(product, key))) {
    await product.build(swift);
    await store(product, key);
  }
  await Bun.write(stamp, key);
}

const archiveOf = ({ name }: Product): string => join(products, `${name}.${process.pid}.tar`);

async function restore(product: Product, key: string): Promise<boolean> {
  const archive = archiveOf(product);
  await mkdir(products, { recursive: true });
  if (!cache.restore(key, archive)) return false;
  const { status } = await run(["tar", "-xf", archive, "-C", products]);
  await rm(archive);
  return status === 0;
}

async function store(product: Product, key: string): Promise<void> {
  const archive = archiveOf(product);
  await runOrFail("Packing what was built", ["tar", "-cf", archive, "-C", products, ...product.files]);
  cache.store(key, archive);
  cache.trim();
  await rm(archive);
}

/**
 * Links the objects into a dylib that contains Swift's libraries. SwiftPM would compile everything again for that,
 * although only the link differs. Compiling an additional source here makes the compiler list the static libraries of
 * Foundation.
 */
async function linkStatically(swift: SwiftToolchain, target: string): Promise<void> {
  const source = join(products, "libraries.swift");
  const draft = `${target}.${process.pid}`;
  await Bun.write(source, "import Foundation\n");
  const objects = `@${join(built, "OrchardMetal.product", "Objects.LinkFileList")}`;
  const linker = ["--gc-sections", "-s", "-z", "defs"].flatMap((word) => ["-Xlinker", word]);
  const flags = ["-emit-library", "-module-name", "Libraries", "-static-stdlib", "-lstdc++", "-ldl", "-lpthread"];
  const command = [swift.swiftc, source, objects, ...flags, ...linker, ...swift.compilerFlags, "-o", draft];
  await runOrFail("Linking the dylib", command, { cwd: products, environment: swift.environment });
  await rename(draft, target);
}

/** Apple's command-line tools have no XCTest: only Xcode has. */
async function requireXCTest(): Promise<void> {
  const { status } = await run(["xcrun", "--find", "xctest"]);
  if (status === 0) return;
  throw new Failure(
    "The Swift tests need XCTest, which comes with Xcode and not with the command-line tools. Install Xcode, then " +
      "run `sudo xcode-select -s /Applications/Xcode.app`.",
  );
}

async function swiftBuild(swift: SwiftToolchain, ...words: string[]): Promise<RunResult> {
  const command = [swift.swift, "build", ...packageFlags(swift), ...words];
  const result = await run(command, { cwd: swiftFolder, environment: swift.environment });
  if (result.status !== 0) throw new Failure(`swift build failed:\n${interesting(result.output)}`);
  return result;
}

/**
 * The useful parts of a failed build's output: each diagnostic once (every file of a module may repeat them), and no
 * progress.
 */
function interesting(output: string): string {
  const lines = output.split("\n").filter((line) => !/^\[\d+\/\d+\]|^(Building|Planning) /.test(line));
  return [...new Set(lines)].slice(-200).join("\n").trim();
}
