/** Builds the parts that programs of this repository need, then runs them. */
import { getBackend } from "../src/backend/policy.ts";
import { checkOrchard } from "../src/cli/program.ts";
import { environmentFlag } from "../src/core/environment.ts";
import { packageRoot } from "../src/core/paths.ts";
import { presetFor } from "../src/train/settings.ts";
import { buildCpu } from "./cpu/build.ts";
import { Failure } from "./failure.ts";
import { build } from "./swift/command.ts";
import { setUp, setUpCpu } from "./toolchain/setup.ts";

/** Builds the dylibs into `build/<platform>-<arch>`. The build is incremental: it compiles only what changed. */
export async function buildAll(): Promise<void> {
  const swift = await setUp();
  await buildCpu();
  if (swift) await build(swift);
}

/** Builds, and runs the benchmarks: all of `bench/`, or the named ones; a single one may get options. */
export function runBenchmarks(words: readonly string[]): Promise<void> {
  const end = words.findIndex((word) => word.startsWith("-"));
  const names = end < 0 ? words : words.slice(0, end);
  if (end >= 0 && names.length !== 1)
    throw new Failure(`Expected the name of one benchmark before ${words[end]}, got ${names.length} names.`);
  return runBuilt(chooseBenchmarks(names), words.slice(names.length));
}

/**
 * Builds, and trains a small GPT on the declaration files in `node_modules`, for about a minute, or for a few steps on
 * a simulated device.
 */
export const runDemo = (words: readonly string[]): Promise<void> =>
  runTrain(["--preset", presetFor(getBackend()) === "tiny" ? "tiny" : "demo", ...words]);

/** Builds, and trains: `orchard train`. */
export const runTrain = (words: readonly string[]): Promise<void> => runOrchard(["train", ...words]);

/** Builds, and generates text with a trained model: `orchard generate`. */
export const runGenerate = (words: readonly string[]): Promise<void> => runOrchard(["generate", ...words]);

/** Builds nothing for help or wrong arguments. */
async function runOrchard(words: readonly string[]): Promise<void> {
  if (await checkOrchard(words)) await runBuilt([orchard], words);
}

const orchard = "src/cli/orchard.ts";

/** Programs that require Metal. All other programs use the backend that operations try first. */
const metalPrograms = [
  "bench/attention.copies.ts",
  "bench/attention.kernels.ts",
  "bench/checker.ts",
  "bench/dispatch.ts",
  "bench/gpu.ts",
];

/** Sets up and builds, then runs the programs in sequence with the running Bun. Stops at the first failure. */
export async function runBuilt(files: readonly string[], words: readonly string[] = []): Promise<void> {
  await prepare(files);
  for (const file of files) {
    const child = Bun.spawn([process.execPath, file, ...words], {
      cwd: packageRoot,
      stdio: ["inherit", "inherit", "inherit"],
    });
    process.exitCode = await passingSignals(child);
    if (process.exitCode !== 0) return;
  }
}

/** Passes signals on to the program, which saves its work when interrupted, and waits for it. */
async function passingSignals(child: Bun.Subprocess): Promise<number> {
  const pass = (signal: NodeJS.Signals) => child.kill(signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, pass);
  try {
    return await child.exited;
  } finally {
    for (const signal of signals) process.off(signal, pass);
  }
}

async function prepare(files: readonly string[]): Promise<void> {
  const usesMetal = getBackend() === "metal" || files.some((file) => metalPrograms.includes(file));
  if (!usesMetal) {
    return setUpCpu(() => buildCpu("machine"));
  }
  return buildAll();
}

/**
 * Returns the files of benchmarks: all of `bench/` (shared code is in `bench/support/`), or the named ones. With
 * `ORCHARD_SKIP_METAL=1` it skips and lists those that require Metal.
 */
export function chooseBenchmarks(names: readonly string[], root: string = packageRoot): string[] {
  const found = new Bun.Glob("bench/*.ts").scanSync({ cwd: root });
  const files = [...found].sort();
  return withoutMetal(names.length === 0 ? files : names.map((name) => fileOf(name, files)));
}

function fileOf(name: string, files: readonly string[]): string {
  const file = `bench/${name}.ts`;
  if (files.includes(file)) return file;
  const known = files.map((path) => path.slice("bench/".length, -".ts".length)).sort();
  throw new Failure(`Unknown benchmark "${name}"; the benchmarks are: ${known.join(", ")}.`);
}

function withoutMetal(files: readonly string[]): string[] {
  if (!environmentFlag("ORCHARD_SKIP_METAL")) return [...files];
  for (const file of files) if (metalPrograms.includes(file)) console.log(`${file} is left out: ORCHARD_SKIP_METAL=1`);
  return files.filter((file) => !metalPrograms.includes(file));
}
