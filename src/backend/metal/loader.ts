import { dlopen, type Library } from "bun:ffi";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { BackendError } from "../../errors.ts";
import { declarations } from "./abi.ts";
import { truncation } from "./elf.ts";
import { ABI_VERSION } from "./layouts.ts";

export type Native = Library<typeof declarations>["symbols"];

/** A place where the dylib may be, in the order in which they are tried. */
export interface Candidate {
  /** What kind of place it is, for people. */
  readonly origin: "ORCHARD_LIBRARY" | "platform package" | "bundled";
  readonly path: string;
}

export interface LoadedLibrary extends Candidate {
  readonly native: Native;
}

const platform = `${process.platform}-${process.arch}`;
const fileName = process.platform === "darwin" ? "libOrchardMetal.dylib" : "libOrchardMetal.so";
const packageRoot = join(import.meta.dir, "..", "..", "..");

/** Where the dylib is looked for. `ORCHARD_LIBRARY`, where it is set, is the only place. */
export function libraryCandidates(environment: Record<string, string | undefined> = process.env): Candidate[] {
  const named = environment["ORCHARD_LIBRARY"];
  if (named) return [{ origin: "ORCHARD_LIBRARY", path: named }];
  const candidates: Candidate[] = [];
  const fromPackage = platformPackageLibrary();
  if (fromPackage) candidates.push({ origin: "platform package", path: fromPackage });
  candidates.push({ origin: "bundled", path: join(packageRoot, "build", platform, fileName) });
  return candidates;
}

/** The dylib inside `orchard-metal-<platform>-<arch>`, where that package is installed. */
function platformPackageLibrary(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`orchard-metal-${platform}/${fileName}`);
  } catch {
    return undefined; // not installed: the usual case in a checkout
  }
}

/**
 * Loads the dylib and checks that it speaks this version of the interface.
 *
 * @throws {BackendError} `libraryMissing`, `libraryUnusable` or `abiMismatch`, with the path and what to do.
 */
export function loadLibrary(candidates: readonly Candidate[] = libraryCandidates()): LoadedLibrary {
  const found = candidates.find((candidate) => existsSync(candidate.path));
  if (!found) {
    const places = candidates.map(({ origin, path }) => `${path} (${origin})`).join(", ");
    throw new BackendError(
      "metal",
      "libraryMissing",
      `there is no ${fileName} at ${places}. \`bun run build\` makes it.`,
    );
  }
  checkVersion(found);
  return { ...found, native: openLibrary(found.path, declarations) };
}

function checkVersion({ path, origin }: Candidate): void {
  const { orchard_abi_version: declaration } = declarations;
  const version = openLibrary(path, { orchard_abi_version: declaration }).orchard_abi_version();
  if (version === ABI_VERSION) return;
  const mend =
    origin === "ORCHARD_LIBRARY"
      ? "Point ORCHARD_LIBRARY at a matching one, or unset it."
      : "`bun run build` makes a matching one.";
  throw new BackendError(
    "metal",
    "abiMismatch",
    `${path} speaks version ${version} of orchard.h, version ${ABI_VERSION} is wanted. ${mend}`,
  );
}

function openLibrary<Declarations extends Record<string, object>>(path: string, wanted: Declarations) {
  try {
    const problem = truncation(path);
    if (problem) throw new Error(problem);
    return dlopen(path, wanted as never).symbols as unknown as Library<Declarations & typeof declarations>["symbols"];
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BackendError(
      "metal",
      "libraryUnusable",
      `${path} can't be used: ${reason}. \`bun run build\` makes it anew.`,
      { cause },
    );
  }
}

let shared: LoadedLibrary | undefined;

/** The process's dylib, loaded at the first call and never unloaded: calling into a closed library crashes. */
export function library(): LoadedLibrary {
  shared ??= loadLibrary();
  return shared;
}
