/**
 * The modules that Swift programs on Linux import instead of Apple's: `Metal` (the software device) and related
 * modules. They are compiled once into a static library, from the sources in the package.
 */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { broughtBlas } from "../backend/cpu/loader.ts";
import { isClone } from "../core/commands.ts";
import { cacheFolder, packageRoot } from "../core/paths.ts";
import type { SwiftToolchain } from "./toolchain.ts";

/** The folder of the Swift package. */
export const swiftFolder: string = join(packageRoot, "swift");

const headers = join(swiftFolder, "Sources", "MetalRuntime");

/**
 * The flags of `swift build` for this package. They are the same for every product, since different flags would
 * recompile everything. Warnings are errors only for the compiler that the sources are tested with; other versions may
 * have other warnings.
 */
export const packageFlags = (swift: SwiftToolchain): string[] => [
  "-c",
  "release",
  "-Xswiftc",
  "-enable-testing",
  // Checks of overlapping accesses to properties took a quarter of the time to encode a dispatch.
  "-Xswiftc",
  "-enforce-exclusivity=unchecked",
  ...(isClone && (swift.origin === "cache" || process.env["CI"]) ? ["-Xswiftc", "-warnings-as-errors"] : []),
  ...swift.buildFlags,
  ...swift.programFlags,
];

/** Hashes everything that a build of this package depends on: the compiler, the flags and the files' contents. */
export function packageKey(swift: SwiftToolchain, folder: string = swiftFolder): string {
  const hash = createHash("sha256").update([swift.swiftc, swift.version, ...packageFlags(swift)].join("\n"));
  const names = ["Package.swift", ...new Bun.Glob("{Sources,Tests}/**/*").scanSync(folder)];
  for (const name of names.sort()) {
    const content = readFileSync(join(folder, name));
    hash.update(`\n${name} ${content.length}\n`).update(content);
  }
  return hash.digest("hex");
}

/** The folder of the compiled modules: `libMetal.a`, and a `.swiftmodule` for each module. */
export type ModuleFolder = { readonly folder: string } | { readonly problem: string };

/**
 * Compiles the modules, unless this compiler has already compiled these sources. The folder of the result is created
 * atomically, so concurrent builds see all of it or nothing.
 */
export async function buildModules(swift: SwiftToolchain): Promise<ModuleFolder> {
  const folder = moduleFolder(swift);
  if (existsSync(folder)) return touched(folder);
  claimScratch(scratchFolder());
  const products = join(scratchFolder(), "release");
  // The archiver only adds and replaces members, so an old archive could contain objects of deleted sources.
  rmSync(join(products, "libMetal.a"), { force: true });
  const command = [
    swift.swift,
    "build",
    "--scratch-path",
    scratchFolder(),
    "--product",
    "Metal",
    ...packageFlags(swift),
  ];
  const { status, output } = await collect(swift, command, swiftFolder);
  if (status !== 0) return { problem: output };
  keepModules(products, folder);
  return { folder };
}

/** The files of a build's folder that programs import and link. */
export const moduleFiles: readonly string[] = ["Modules", "libMetal.a"];

/** Returns the folder where {@link buildModules} finds the modules of the current sources. */
export const moduleFolder = (swift: SwiftToolchain): string => join(modulesFolder(), packageKey(swift).slice(0, 16));

/** Stores the modules of a build in the folder of the sources from which it began. */
export function keepModules(products: string, folder: string): void {
  if (existsSync(folder)) return;
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  cpSync(join(products, "Modules"), draft, { recursive: true });
  copyFileSync(join(products, "libMetal.a"), join(draft, "libMetal.a"));
  if (existsSync(folder)) rmSync(draft, { recursive: true });
  else renameSync(draft, folder);
  removeOld(modulesFolder());
}

/** The modules of all clones and installed packages on the machine. */
const modulesFolder = (): string => join(cacheFolder(), "swift", "modules");

/**
 * Empties SwiftPM's scratch folder if it was created for another path: it contains absolute paths, and builds fail
 * after the checkout was moved ("PCH was compiled with module cache path …").
 */
export function claimScratch(scratch: string): void {
  const stamp = join(scratch, "made-for");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === scratch) return;
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  writeFileSync(stamp, scratch);
}

/** SwiftPM's scratch folder: `.build` in a clone; in the cache for an installed package, which must not be modified. */
export const scratchFolder = (): string =>
  isClone ? join(swiftFolder, ".build") : join(cacheFolder(), "swift", shortHash(packageRoot));

/** The folder of the C headers that come with the modules and replace Apple's: `#include <simd/simd.h>`. */
export const appleHeaders: string = join(headers, "apple");

/**
 * Returns the compiler flags with which C and C++ targets find these headers. On x86-64 they include `arm_neon.h`, over
 * SIMDe (libsimde-dev) of the toolchain or of the system.
 */
export function headerFlags(swift: SwiftToolchain): string[] {
  if (process.arch !== "x64") return [`-I${appleHeaders}`];
  const brought = resolve(dirname(swift.swiftc), "..", "..", "..", "include");
  const simde = existsSync(join(brought, "simde")) ? ["-idirafter", brought] : [];
  return [`-I${appleHeaders}`, `-I${join(appleHeaders, "neon")}`, ...simde];
}

/** The flags with which `swiftc` finds the modules. */
export const importFlags = (folder: string): string[] => [
  "-I",
  folder,
  "-Xcc",
  `-fmodule-map-file=${join(headers, "include", "module.modulemap")}`,
  "-Xcc",
  `-fmodule-map-file=${join(appleHeaders, "modules.modulemap")}`,
  "-Xcc",
  `-I${appleHeaders}`,
];

/** The linker flags for the modules' static library. */
export const linkFlags = (folder: string): string[] => ["-L", folder, "-lMetal", "-lstdc++"];

/**
 * Environment variables for programs that use the modules: the path of the Metal standard library's headers, and the
 * OpenBLAS that `setup` installs if the system has none.
 */
export function moduleEnvironment(): Record<string, string> {
  if (process.platform !== "linux") return {};
  const variables = { ORCHARD_METAL_HEADERS: join(headers, "metal"), ORCHARD_BLAS: broughtBlas() };
  return Object.fromEntries(Object.entries(variables).filter(([name, path]) => !process.env[name] && existsSync(path)));
}

/** Runs a command of the toolchain. Returns what it printed, and all output with the messages on standard error. */
export async function collect(swift: SwiftToolchain, command: string[], cwd: string) {
  const child = Bun.spawn(command, {
    cwd,
    env: { ...process.env, ...swift.environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [printed, messages] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { status: await child.exited, printed, output: printed + messages };
}

const shortHash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

function touched(folder: string): ModuleFolder {
  const now = new Date();
  utimesSync(folder, now, now);
  return { folder };
}

/** Removes modules of other sources that were not used for a week. */
function removeOld(parent: string): void {
  const limit = Date.now() - 7 * 24 * 3_600_000;
  for (const name of readdirSync(parent)) {
    const folder = join(parent, name);
    if (statSync(folder).mtimeMs < limit) rmSync(folder, { recursive: true, force: true });
  }
}
