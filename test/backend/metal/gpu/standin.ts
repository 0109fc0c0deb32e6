/** Builds the stand-in for NVIDIA's driver (driver.cpp). */
import { join } from "node:path";
import { findCompiler } from "../../../../scripts/cpu/compiler.ts";

/** Compiles the library into the folder, and returns its path. */
export async function buildStandin(folder: string): Promise<string> {
  const { command, linkFlags } = await findCompiler();
  const library = join(folder, "libcuda.so.1");
  const source = join(import.meta.dir, "driver.cpp");
  const words = [...command, "-std=c++17", "-shared", "-fPIC", "-o", library, source, ...linkFlags];
  const { exitCode, stderr } = Bun.spawnSync(words, { stdout: "ignore" });
  if (exitCode !== 0) throw new Error(stderr.toString());
  return library;
}
