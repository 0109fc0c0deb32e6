/** Finds a backend's dylib and checks its version. */

import { dlopen, type FFIFunction, type Library } from "bun:ffi";
import { existsSync } from "node:fs";
import packageFile from "../../package.json" with { type: "json" };
import { dylibAdvice, isClone } from "../core/commands.ts";
import { environment, type environmentVariables } from "../core/environment.ts";
import { BackendError } from "../core/errors.ts";
import { exportEnvironment } from "../core/native_environment.ts";
import { packaged } from "../core/packaged.ts";
import { buildFolder, platform } from "../core/paths.ts";
import { tupleOf } from "../core/tuples.ts";
import { interpreterOf, truncation } from "./elf.ts";

/** A possible path of a dylib. */
export interface Candidate {
  /** The source of the path, for messages: an environment variable's name, `platform package` or `bundled`. */
  readonly origin: string;
  readonly path: string;
}

type Declarations = Record<string, FFIFunction>;

/** A backend's dylib and its interface. */
export interface LibraryDescription<Functions extends Declarations> {
  /** The backend, for messages. */
  readonly backend: string;
  readonly fileName: string;
  /** The environment variable for the dylib's path. */
  readonly variable: keyof typeof environmentVariables;
  /** The C header, for messages. */
  readonly header: string;
  readonly abiVersion: number;
  /** The function that returns the dylib's version of the header. */
  readonly versionFunction: string;
  readonly declarations: Functions;
}

export interface LoadedLibrary<Functions extends Declarations> extends Candidate {
  readonly native: Library<Functions>["symbols"];
}

/** Returns the paths to try in order. If the environment variable is set, it is the only one. */
export function candidatesOf(
  { fileName, variable }: Pick<LibraryDescription<Declarations>, "fileName" | "variable">,
  values: Record<string, string | undefined> = process.env,
): Candidate[] {
  const named = environment(variable, values);
  if (named) return [{ origin: variable, path: named }];
  const fromPackage = packaged?.dylib(packagePlatform(), fileName);
  const bundled = { origin: "bundled", path: `${buildFolder}/${fileName}` };
  return fromPackage ? [{ origin: "platform package", path: fromPackage }, bundled] : [bundled];
}

/** Returns why a dylib is missing, with a fix: a clone can build it, an installed package can't. */
export function whyMissing(variable: LibraryDescription<Declarations>["variable"], candidates: readonly Candidate[]) {
  if (candidates.some(({ path }) => existsSync(path))) return undefined;
  const [{ origin, path }] = tupleOf(candidates, 1);
  if (origin === variable) return `${variable} names ${path}, which does not exist`;
  if (isClone) return "its dylib is not built (`bun run build` makes it)";
  const built = `set ${variable} to use a dylib built from source`;
  const { isKnown, name } = packageOf(variable);
  if (!isKnown) return `there is no package with its dylib for ${packagePlatform()} (${built})`;
  return `its dylib is in ${name}, which is not installed: \`bun add ${name}@${packageFile.version}\` (${built})`;
}

/** Returns the package with the dylib for this platform. On Linux the metal backend's is the software device. */
function packageOf(variable: LibraryDescription<Declarations>["variable"]): { name: string; isKnown: boolean } {
  const isDevice = process.platform === "linux" && variable === "ORCHARD_LIBRARY";
  return {
    name: `${packageFile.name}-${isDevice ? "device-" : ""}${packagePlatform()}`,
    isKnown: (isDevice ? devicePlatforms : platformPackages).includes(packagePlatform()),
  };
}

/** Returns the command that adds the software device to a project; undefined if there is no package of it. */
export const deviceCommand = (): string | undefined => {
  const { name, isKnown } = packageOf("ORCHARD_LIBRARY");
  return isKnown && process.platform === "linux" ? `bun add --dev ${name}@${packageFile.version}` : undefined;
};

/** Returns the fix for a missing dylib, as a sentence without a period. */
function missingAdvice(variable: LibraryDescription<Declarations>["variable"]): string {
  const command = isClone || variable !== "ORCHARD_LIBRARY" ? undefined : deviceCommand();
  return command ? `\`${command}\` adds the software device` : dylibAdvice();
}

/** The platforms with dylib packages. */
export const platformPackages: readonly string[] = [
  "darwin-arm64",
  "linux-arm64",
  "linux-arm64-musl",
  "linux-x64",
  "linux-x64-musl",
];

/** The platforms with an optional package of the software Metal device. */
export const devicePlatforms: readonly string[] = ["linux-x64"];

let known: string | undefined;

/** Returns this process's platform in names of packages: with musl as its C library, `linux-x64-musl`. */
export function packagePlatform(): string {
  known ??= process.platform === "linux" ? packagePlatformOf(process.execPath) : platform;
  return known;
}

/**
 * Returns the Linux platform of a program in names of packages. A process can load only dylibs for its C library, which
 * the loader named in the program identifies, as in the package `detect-libc`; the system may have both libraries.
 */
export function packagePlatformOf(program: string): string {
  let interpreter: string | undefined;
  try {
    interpreter = interpreterOf(program);
  } catch {} // The program may be unreadable, or gone.
  // If musl's loader was started with a program as its argument, the loader is the program.
  return [interpreter, program].some((file) => file?.includes("/ld-musl-")) ? `${platform}-musl` : platform;
}

/**
 * Loads a backend's dylib and checks that it has the expected version of its header.
 *
 * @throws {BackendError} `libraryMissing`, `libraryUnusable` or `abiMismatch`, with the path and a fix.
 */
export function loadFrom<Functions extends Declarations>(
  description: LibraryDescription<Functions>,
  candidates: readonly Candidate[],
): LoadedLibrary<Functions> {
  const { backend, fileName, declarations } = description;
  const found = candidates.find((candidate) => existsSync(candidate.path));
  if (!found) {
    const paths = candidates.map(({ origin, path }) => `${path} (${origin})`).join(", ");
    const advice = missingAdvice(description.variable);
    throw new BackendError(backend, "libraryMissing", `there is no ${fileName} at ${paths}; ${advice}`);
  }
  exportEnvironment();
  const opening = <F extends Declarations>(functions: F) =>
    reported(backend, found, () => dlopen(found.path, functions));
  reported(backend, found, checkComplete);
  checkVersion(description, found, opening);
  return { ...found, native: opening(declarations).symbols };
}

function checkVersion(
  description: Omit<LibraryDescription<Declarations>, "declarations">,
  { path, origin }: Candidate,
  opening: <F extends Declarations>(functions: F) => Library<F>,
): void {
  const { backend, variable, header, abiVersion, versionFunction } = description;
  const functions = { [versionFunction]: { args: [], returns: "i32" } } as const;
  const version: number = opening(functions).symbols[versionFunction]();
  if (version === abiVersion) return;
  const fix = origin === variable ? `point ${variable} at a matching one, or unset it` : dylibAdvice();
  throw new BackendError(
    backend,
    "abiMismatch",
    `expected ${path} to implement version ${abiVersion} of ${header}, got version ${version}; ${fix}`,
  );
}

function checkComplete({ path }: Candidate): void {
  const problem = isEmbedded(path) ? undefined : truncation(path);
  if (problem) throw new Error(problem);
}

/** Runs `use`. @throws {BackendError} `libraryUnusable` if it throws */
function reported<Result>(backend: string, library: Candidate, use: (library: Candidate) => Result): Result {
  try {
    return use(library);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `${library.path} can't be used: ${reason}; ${dylibAdvice()}`;
    throw new BackendError(backend, "libraryUnusable", message, { cause });
  }
}

/** Whether the file is embedded in this executable (`bun build --compile`), where only Bun's `dlopen` can load it. */
const isEmbedded = (path: string): boolean => path.startsWith("/$bunfs/");
