/**
 * Where the library's modules are. The packed library is one file (scripts/release/bundle.ts), which has this module
 * and the others that are files of their own beside it.
 */
import { extname, join } from "node:path";

/** The folder `src`. */
export const sourceFolder: string = join(import.meta.dir, "..");

/** The path of a module that is loaded by its path, such as a worker's: `moduleFile("data/loader/worker_main")`. */
export const moduleFile = (name: string): string => join(sourceFolder, `${name}${extname(import.meta.path)}`);
