/**
 * Precompiles the standard library's headers for each instruction set when many files are compiled, since reading them
 * takes a third of a small file's time. Objects are the same without them, and do not depend on them.
 */
import { existsSync, realpathSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { run } from "../../src/cli/run.ts";
import { inParallel } from "../parallel.ts";
import type { CppCompiler } from "./compiler.ts";
import { type ObjectFile, precompiledFolder } from "./objects.ts";

/** The headers that most of the sources include. */
const headers = [
  "algorithm",
  "array",
  "atomic",
  "climits",
  "cmath",
  "condition_variable",
  "cstddef",
  "cstdint",
  "cstring",
  "functional",
  "limits",
  "memory",
  "mutex",
  "numeric",
  "optional",
  "string",
  "thread",
  "type_traits",
  "utility",
  "vector",
];

const common = `${headers.map((name) => `#include <${name}>`).join("\n")}
#if defined(__x86_64__)
#include <immintrin.h>
#endif
`;

/** The number of files of a kind from which precompiling saves more than it costs. */
const WORTH = 6;

export interface Precompiled {
  /** Returns the flags with which an object uses the precompiled headers. */
  flagsFor(object: ObjectFile): string[];
  remove(): Promise<void>;
}

/**
 * Precompiles the headers for flags that many of the objects share. Returns undefined if there are none, and with
 * ccache, which does not support precompiled headers.
 *
 * @param text the header to precompile. Default: one that includes what most of the sources include
 */
export async function precompile(
  compiler: CppCompiler,
  objectFolder: string,
  objects: readonly ObjectFile[],
  progress: (text: string) => void,
  text: string = common,
): Promise<Precompiled | undefined> {
  const kinds = [...Map.groupBy(objects, keyOf)].filter(([, { length }]) => length >= WORTH);
  if (kinds.length === 0 || isCached(compiler)) return undefined;
  const folder = join(objectFolder, precompiledFolder);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  progress("Precompiling the standard library's headers");
  const made = new Map<string, string[]>();
  await inParallel(kinds.entries(), async ([index, [key, [first]]]) => {
    const flags = await make(compiler, join(folder, `${index}.h`), text, first.flags);
    if (flags) made.set(key, flags);
  });
  return {
    flagsFor: (object) => made.get(keyOf(object)) ?? [],
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

const keyOf = ({ flags }: ObjectFile): string => flags.join("\n");

/**
 * Returns the flags that use the precompiled header. Undefined if the compiler can't create one; then everything
 * compiles without it.
 */
async function make(
  { command, isClang }: CppCompiler,
  header: string,
  text: string,
  flags: readonly string[],
): Promise<string[] | undefined> {
  await Bun.write(header, text);
  const path = `${header}.${isClang ? "pch" : "gch"}`;
  // Omits the header's time from the result: Zig may return a cached result that has an earlier time.
  const timeless = isClang ? ["-Xclang", "-fno-pch-timestamp"] : [];
  const { status } = await run([...command, ...flags, ...timeless, "-x", "c++-header", header, "-o", path]);
  if (status !== 0 || !existsSync(path)) return undefined;
  return isClang ? ["-include-pch", path] : ["-include", header];
}

/** Whether the command is ccache under a compiler's name. */
const isCached = ({ command: [program] }: CppCompiler): boolean =>
  program !== undefined && existsSync(program) && basename(realpathSync(program)).startsWith("ccache");
