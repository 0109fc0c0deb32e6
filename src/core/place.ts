/**
 * Locates the library's modules. The packed library is one file (scripts/release/bundle.ts); this module and a few
 * others stay separate files next to it.
 */
import { extname, join } from "node:path";

/** The folder `src`. */
export const sourceFolder: string = join(import.meta.dir, "..");

/** Returns the path of a module that is loaded by path, such as a worker: `moduleFile("data/loader/worker_main")`. */
export const moduleFile = (name: string): string => join(sourceFolder, `${name}${extname(import.meta.path)}`);
