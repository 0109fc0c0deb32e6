import { libraryName } from "../../core/paths.ts";
import { type Candidate, candidatesOf, type LibraryDescription, type LoadedLibrary, loadFrom } from "../library.ts";
import { declarations } from "./abi.ts";
import { ABI_VERSION } from "./layouts.ts";

type MetalLibrary = LoadedLibrary<typeof declarations>;
export type Native = MetalLibrary["native"];

const description: LibraryDescription<typeof declarations> = {
  backend: "metal",
  fileName: libraryName,
  variable: "ORCHARD_LIBRARY",
  header: "orchard.h",
  abiVersion: ABI_VERSION,
  versionFunction: "orchard_abi_version",
  declarations,
};

/** Returns the paths to try for the dylib. If `ORCHARD_LIBRARY` is set, it is the only one. */
export const libraryCandidates = (environment?: Record<string, string | undefined>): Candidate[] =>
  candidatesOf(description, environment);

/**
 * Loads the dylib and checks its interface version.
 *
 * @throws {BackendError} `libraryMissing`, `libraryUnusable` or `abiMismatch`, with the path and a fix.
 */
export const loadLibrary = (candidates: readonly Candidate[] = libraryCandidates()): MetalLibrary =>
  loadFrom(description, candidates);

let shared: MetalLibrary | undefined;

/** Returns the dylib, which is loaded at the first call and never unloaded, since calls into an unloaded one crash. */
export function library(): MetalLibrary {
  shared ??= loadLibrary();
  return shared;
}
