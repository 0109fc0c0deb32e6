/** Builds the cpu backend's dylib and the replay program with a sanitizer. */
import { join, relative } from "node:path";
import { run } from "../../src/cli/run.ts";
import { cpuLibraryName, packageRoot } from "../../src/core/paths.ts";
import { buildCpuLibrary, buildPath } from "../cpu/build.ts";
import { Failure } from "../failure.ts";
import type { Instrumented, Sanitizer } from "./sanitizers.ts";

const replaySource = join(packageRoot, "native", "replay", "replay.cpp");

/** Additional flags for the dylib's link; the program that loads it provides the sanitizer's functions. */
export const libraryFlags: readonly string[] =
  process.platform === "darwin"
    ? ["-dynamiclib", "-install_name", `@rpath/${cpuLibraryName}`, "-framework", "Accelerate"]
    : ["-shared", "-pthread", "-ldl"];

/** The dylib and the program, in one folder. */
export interface Replayer {
  readonly library: string;
  readonly program: string;
}

export async function buildReplayer(
  sanitizer: Sanitizer,
  { compiler }: Instrumented,
  progress: (text: string) => void,
): Promise<Replayer> {
  const folder = buildPath("sanitize", sanitizer.name);
  const library = await buildCpuLibrary(progress, {
    compiler,
    objectFolder: join(folder, "objects"),
    target: join(folder, cpuLibraryName),
    flags: sanitizer.flags,
    libraryFlags,
  });
  progress("Building the replay");
  return { library, program: await buildProgram(sanitizer, { compiler }, join(folder, "replay")) };
}

/** The program's source and flags, without those of a compiler. */
export const programWords = (sanitizer: Sanitizer): string[] => [
  replaySource,
  "-std=c++17",
  ...sanitizer.flags,
  "-pthread",
  "-ldl",
];

/** Builds the program, which can load any dylib built with the same sanitizer. */
export async function buildProgram(
  sanitizer: Sanitizer,
  { compiler: { command, linkFlags } }: Pick<Instrumented, "compiler">,
  target: string,
): Promise<string> {
  const { status, output } = await run([...command, ...programWords(sanitizer), ...linkFlags, "-o", target]);
  if (status !== 0) throw new Failure(`${relative(packageRoot, replaySource)} does not compile:\n${output.trim()}`);
  return target;
}
