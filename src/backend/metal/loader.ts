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

/** Where the dylib is looked for. `ORCHARD_LIBRARY`, where it is set, is the only place. */
export const libraryCandidates = (environment?: Record<string, string | undefined>): Candidate[] =>
  candidatesOf(description, environment);

/**
 * Loads the dylib and checks that it speaks this version of the interface.
 *
 * @throws {BackendError} `libraryMissing`, `libraryUnusable` or `abiMismatch`, with the path and what to do.
 */
export const loadLibrary = (candidates: readonly Candidate[] = libraryCandidates()): MetalLibrary =>
  loadFrom(description, candidates);

let shared: MetalLibrary | undefined;

/** The process's dylib, loaded at the first call and never unloaded: calling into a closed library crashes. */
export function library(): MetalLibrary {
  shared ??= loadLibrary();
  return shared;
}
