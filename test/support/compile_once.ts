/** Compiles C++ of tests, which takes seconds, once on a machine for each text of the sources and their headers. */
import { isAbsolute } from "node:path";
import { ContentCache, contentKey } from "../../scripts/content_cache.ts";
import { type CppCompiler, findCompiler } from "../../scripts/cpu/compiler.ts";
import { run, runOrFail } from "../../src/cli/run.ts";

/** Each program or library has at most 1 MB. */
const cache = new ContentCache("tests", 64 * 2 ** 20);

/**
 * Compiles sources into a program or a library, or copies the result of an earlier run whose preprocessed sources and
 * words were the same.
 *
 * @param words flags and the paths of sources
 * @throws {Error} with the compiler's messages, also for a warning
 */
export async function compileOnce(words: readonly string[], output: string, compiler?: CppCompiler): Promise<void> {
  const { command, linkFlags, version } = compiler ?? (await findCompiler());
  const unlinked = words.filter((word) => word !== "-shared" && !word.startsWith("-l"));
  const { output: text } = await runOrFail("The preprocessor", [...command, ...unlinked, "-E", "-P"]);
  const flags = words.filter((word) => !isAbsolute(word) && !word.startsWith("-I")); // the text has what these lead to
  const key = contentKey([version, ...command, ...flags, ...linkFlags, text]);
  if (cache.restore(key, output)) return;
  const { status, output: messages } = await run([...command, ...words, ...linkFlags, "-o", output]);
  if (status !== 0 || messages !== "") throw new Error(`${command[0]} ended with ${status}:\n${messages}`);
  cache.store(key, output);
  cache.trim();
}
