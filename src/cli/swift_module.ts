/**
 * The modules that Swift programs import on Linux in the place of Apple's: `Metal`, which is the software device, and
 * those beside it. They are compiled once into a static library, from the sources that come with the package.
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
import { join } from "node:path";
import { isClone } from "../core/commands.ts";
import { cacheFolder, packageRoot } from "../core/paths.ts";
import type { SwiftToolchain } from "./toolchain.ts";

/** The folder of the Swift package. */
export const swiftFolder: string = join(packageRoot, "swift");

const headers = join(swiftFolder, "Sources", "MetalRuntime");

/**
 * How `swift build` builds this package, whatever it is to make: other flags would compile everything again. Warnings
 * are errors where the compiler is one that the sources were tried with; another version may know other warnings.
 */
export const packageFlags = (swift: SwiftToolchain): string[] => [
  ...["-c", "release", "-Xswiftc", "-enable-testing"],
  ...(isClone && (swift.origin === "cache" || process.env["CI"]) ? ["-Xswiftc", "-warnings-as-errors"] : []),
  ...swift.buildFlags,
  ...swift.programFlags,
];

/** A hash of everything that a build of this package depends on: the compiler, the flags, and the files by content. */
export function packageKey(swift: SwiftToolchain, folder: string = swiftFolder): string {
  const hash = createHash("sha256").update([swift.swiftc, swift.version, ...packageFlags(swift)].join("\n"));
  const names = ["Package.swift", ...new Bun.Glob("{Sources,Tests}/**/*").scanSync(folder)];
  for (const name of names.sort()) {
    const content = readFileSync(join(folder, name));
    hash.update(`\n${name} ${content.length}\n`).update(content);
  }
  return hash.digest("hex");
}

/** Where the compiled modules lie: `libMetal.a`, and a `.swiftmodule` for each name that a program imports. */
export type ModuleFolder = { readonly folder: string } | { readonly problem: string };

/**
 * Compiles the modules, unless these sources were compiled by this compiler before. The result has a folder of its own,
 * which appears at once: programs that compile at the same time see all of it or none.
 */
export async function buildModules(swift: SwiftToolchain): Promise<ModuleFolder> {
  const folder = join(modulesFolder(), packageKey(swift).slice(0, 16));
  if (existsSync(folder)) return touched(folder);
  claimScratch(scratchFolder());
  const products = join(scratchFolder(), "release");
  // The archiver only adds and replaces: an archive made anew holds nothing of source files that are gone.
  rmSync(join(products, "libMetal.a"), { force: true });
  const command = [
    ...[swift.swift, "build", "--scratch-path", scratchFolder(), "--product", "Metal"],
    ...packageFlags(swift),
  ];
  const { status, output } = await collect(swift, command, swiftFolder);
  if (status !== 0) return { problem: output };
  keepModules(swift, products);
  return { folder };
}

/** What programs import and link, in the folder of a build. */
export const moduleFiles: readonly string[] = ["Modules", "libMetal.a"];

/** Keeps the modules that a build of the package has made, where {@link buildModules} finds them. */
export function keepModules(swift: SwiftToolchain, products: string): void {
  const folder = join(modulesFolder(), packageKey(swift).slice(0, 16));
  if (existsSync(folder)) return;
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  cpSync(join(products, "Modules"), draft, { recursive: true });
  copyFileSync(join(products, "libMetal.a"), join(draft, "libMetal.a"));
  if (existsSync(folder)) rmSync(draft, { recursive: true });
  else renameSync(draft, folder);
  removeOld(modulesFolder());
}

/** Modules of all clones and installed packages on the machine. */
const modulesFolder = (): string => join(cacheFolder(), "swift", "modules");

/**
 * SwiftPM's folder holds absolute paths, and fails where the checkout was moved ("PCH was compiled with module cache
 * path …"). It is emptied if it was made for another place.
 */
export function claimScratch(scratch: string): void {
  const stamp = join(scratch, "made-for");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === scratch) return;
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  writeFileSync(stamp, scratch);
}

/** SwiftPM's folder: in a clone the usual one; the installed package's sources are not to be written to. */
export const scratchFolder = (): string =>
  isClone ? join(swiftFolder, ".build") : join(cacheFolder(), "swift", shortHash(packageRoot));

/** For `swiftc`: where the modules are. */
export const importFlags = (folder: string): string[] => [
  ...["-I", folder, "-Xcc", `-fmodule-map-file=${join(headers, "include", "module.modulemap")}`],
];

/** For the linker: the library of the modules. It is an archive, of which a program takes only what it uses. */
export const linkFlags = (folder: string): string[] => ["-L", folder, "-lMetal", "-lstdc++"];

/** What a program of these modules finds in its environment: the headers of Metal's standard library. */
export const moduleEnvironment = (): Record<string, string> =>
  process.platform === "linux" && !process.env["ORCHARD_METAL_HEADERS"]
    ? { ORCHARD_METAL_HEADERS: join(headers, "metal") }
    : {};

/** Runs a command of the toolchain and collects what it prints. */
export async function collect(swift: SwiftToolchain, command: string[], cwd: string) {
  const child = Bun.spawn(command, {
    cwd,
    env: { ...process.env, ...swift.environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = (await Promise.all([child.stdout.text(), child.stderr.text()])).join("");
  return { status: await child.exited, output };
}

const shortHash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

function touched(folder: string): ModuleFolder {
  const now = new Date();
  utimesSync(folder, now, now);
  return { folder };
}

/** Modules of other sources that nothing has used for a week. */
function removeOld(parent: string): void {
  const limit = Date.now() - 7 * 24 * 3_600_000;
  for (const name of readdirSync(parent)) {
    const folder = join(parent, name);
    if (statSync(folder).mtimeMs < limit) rmSync(folder, { recursive: true, force: true });
  }
}
