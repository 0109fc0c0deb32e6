import { environmentFlag } from "../src/debug/environment.ts";
import { packageRoot } from "../src/debug/paths.ts";
import { buildCpu } from "./cpu/build.ts";
import { Failure } from "./failure.ts";
import { build } from "./swift/command.ts";
import { setUp } from "./toolchain/setup.ts";

/** Programs that run Metal kernels. */
const metalPrograms = ["bench/checker.ts", "bench/dispatch.ts", "examples/demo.ts"];

/** Sets up and builds, then runs a program of this repository with the Bun that runs. */
export async function runBuilt(file: string, words: readonly string[]): Promise<void> {
  if (environmentFlag("ORCHARD_SKIP_METAL") && metalPrograms.includes(file))
    throw new Failure(`${file} runs Metal kernels, and ORCHARD_SKIP_METAL=1 leaves Metal out. Unset it.`);
  const swift = await setUp();
  await buildCpu();
  if (swift) await build(swift);
  const child = Bun.spawn([process.execPath, file, ...words], {
    cwd: packageRoot,
    stdio: ["inherit", "inherit", "inherit"],
  });
  process.exitCode = await child.exited;
}

/** What benchmarks share; every other file of `bench/` is a program. */
const benchmarkLibrary = "bench/measure.ts";

/** The benchmarks' files: all, or the named ones. */
export function chooseBenchmarks(names: readonly string[], root: string = packageRoot): string[] {
  const found = new Bun.Glob("bench/*.ts").scanSync({ cwd: root });
  const files = [...found].filter((file) => file !== benchmarkLibrary).sort();
  if (names.length === 0) return files;
  return names.map((name) => {
    const file = `bench/${name}.ts`;
    if (files.includes(file)) return file;
    const known = files.map((path) => path.slice("bench/".length, -".ts".length)).join(", ");
    throw new Failure(`There is no benchmark "${name}"; there are: ${known}.`);
  });
}
