/** Finds a backend's dylib, and checks its version. */

import { dlopen, type FFIFunction, type Library } from "bun:ffi";
import { existsSync } from "node:fs";
import packageFile from "../../package.json" with { type: "json" };
import { dylibAdvice, isClone } from "../core/commands.ts";
import { environment, type environmentVariables } from "../core/environment.ts";
import { BackendError } from "../core/errors.ts";
import { exportEnvironment } from "../core/native_environment.ts";
import { packaged } from "../core/packaged.ts";
import { buildFolder, platform } from "../core/paths.ts";
import { truncation } from "./elf.ts";

/** A path at which a dylib may be, in the order in which they are tried. */
export interface Candidate {
  /** Where the path comes from, for messages: an environment variable's name, `platform package` or `bundled`. */
  readonly origin: string;
  readonly path: string;
}

type Declarations = Record<string, FFIFunction>;

/** What a backend's dylib is, and its interface. */
export interface LibraryDescription<Functions extends Declarations> {
  /** The backend, for messages. */
  readonly backend: string;
  readonly fileName: string;
  /** The environment variable that names one dylib. */
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

/** Where a dylib is looked for. Its environment variable, where that is set, is the only path. */
export function candidatesOf(
  { fileName, variable }: Pick<LibraryDescription<Declarations>, "fileName" | "variable">,
  values: Record<string, string | undefined> = process.env,
): Candidate[] {
  const named = environment(variable, values);
  if (named) return [{ origin: variable, path: named }];
  const fromPackage = packaged?.dylibs()?.[fileName];
  const bundled = { origin: "bundled", path: `${buildFolder}/${fileName}` };
  return fromPackage ? [{ origin: "platform package", path: fromPackage }, bundled] : [bundled];
}

/** Why a dylib is at none of its paths, with what to do: a checkout can build it, an installed package can't. */
export function whyMissing(variable: LibraryDescription<Declarations>["variable"], candidates: readonly Candidate[]) {
  if (candidates.some(({ path }) => existsSync(path))) return undefined;
  const [{ origin, path }] = candidates as readonly [Candidate];
  if (origin === variable) return `${variable} names ${path}, which is not there`;
  if (isClone) return "its dylib is not built (`bun run build` makes it)";
  const built = `${variable} can name one that a clone built`;
  const { isKnown, name } = packageOf(variable);
  if (!isKnown || isMusl()) return `there is no package of its dylib for ${systemName()} (${built})`;
  return `its dylib is in ${name}, which is not installed: \`bun add ${name}@${packageFile.version}\` (${built})`;
}

/** The package that holds a dylib for this platform: on Linux the metal backend's is the software device. */
function packageOf(variable: LibraryDescription<Declarations>["variable"]): { name: string; isKnown: boolean } {
  const isDevice = process.platform === "linux" && variable === "ORCHARD_LIBRARY";
  return {
    name: `${packageFile.name}-${isDevice ? "device-" : ""}${platform}`,
    isKnown: (isDevice ? devicePlatforms : platformPackages).includes(platform),
  };
}

/** The command that adds the software device to a project; undefined where there is no package of it. */
export const deviceCommand = (): string | undefined => {
  const { name, isKnown } = packageOf("ORCHARD_LIBRARY");
  return isKnown && process.platform === "linux" ? `bun add --dev ${name}@${packageFile.version}` : undefined;
};

/** What to do where a dylib is not there, as a sentence without its period. */
function missingAdvice(variable: LibraryDescription<Declarations>["variable"]): string {
  const command = isClone || variable !== "ORCHARD_LIBRARY" ? undefined : deviceCommand();
  return command ? `\`${command}\` adds the software device` : dylibAdvice();
}

/** The platforms whose packages hold dylibs. */
export const platformPackages: readonly string[] = ["darwin-arm64", "linux-arm64", "linux-x64"];

/** Those for which a further package, which nobody gets without asking for it, holds the software Metal device. */
export const devicePlatforms: readonly string[] = ["linux-x64"];

/** The packages' dylibs need glibc. */
const isMusl = (): boolean =>
  process.platform === "linux" && existsSync(`/lib/ld-musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`);

const systemName = (): string => (isMusl() ? `${platform} with musl` : platform);

/**
 * Loads a backend's dylib and checks that it has the expected version of its header.
 *
 * @throws {BackendError} `libraryMissing`, `libraryUnusable` or `abiMismatch`, with the path and what to do.
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
  checkVersion(description, found);
  return { ...found, native: openLibrary(backend, found.path, declarations) };
}

function checkVersion(
  description: Omit<LibraryDescription<Declarations>, "declarations">,
  { path, origin }: Candidate,
): void {
  const { backend, variable, header, abiVersion, versionFunction } = description;
  const functions = { [versionFunction]: { args: [], returns: "i32" } } as const;
  const version: number = openLibrary(backend, path, functions)[versionFunction]!();
  if (version === abiVersion) return;
  const fix = origin === variable ? `point ${variable} at a matching one, or unset it` : dylibAdvice();
  throw new BackendError(
    backend,
    "abiMismatch",
    `expected ${path} to have version ${abiVersion} of ${header}, got version ${version}; ${fix}`,
  );
}

function openLibrary<Functions extends Declarations>(backend: string, path: string, functions: Functions) {
  try {
    const problem = isEmbedded(path) ? undefined : truncation(path);
    if (problem) throw new Error(problem);
    return dlopen(path, functions).symbols;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BackendError(backend, "libraryUnusable", `${path} can't be used: ${reason}; ${dylibAdvice()}`, { cause });
  }
}

/** Whether the file is in this executable, from which Bun's `dlopen` alone can take it (`bun build --compile`). */
const isEmbedded = (path: string): boolean => path.startsWith("/$bunfs/");
