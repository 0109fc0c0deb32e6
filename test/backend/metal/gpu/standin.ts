/** Stand-ins for NVIDIA's driver (driver.cpp), cuBLASLt (cublas.cpp, in the same library) and the compiler. */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compileOnce } from "../../../support/compile_once.ts";
import { bunWords } from "../../../support/program.ts";

/** Compiles a driver, by default the stand-ins, into the folder, and returns the library's path. */
export async function buildStandin(folder: string, source = join(import.meta.dir, "cublas.cpp")): Promise<string> {
  const library = join(folder, "libcuda.so.1");
  await compileOnce(["-std=c++17", "-shared", "-fPIC", source], library);
  return library;
}

/** Replaces the compiler. Writes to the file after -o: any text for a header, else a module with one entry. */
const compiler = `#!/bin/sh
previous=; file=; kind=ptx
for word in "$@"; do
  [ "$previous" = -o ] && file=$word
  [ "$word" = -emit-pch ] && kind=header
  previous=$word
done
[ $kind = header ] && exec sh -c 'echo header > "$1"' sh "$file"
echo '.version 7.8' > "$file"
for entry in $(seq 0 99); do echo ".visible .entry mrt_entry_$entry()"; done >> "$file"
`;

/** Builds the stand-ins in a folder, for {@link runOnStandin}. `driver` is the source of another driver. */
export async function prepare(folder: string, driver?: string): Promise<void> {
  await buildStandin(folder, driver);
  mkdirSync(join(folder, "usr/lib/clc"), { recursive: true });
  writeFileSync(join(folder, "usr/lib/clc/nvptx64--nvidiacl.bc"), "functions");
  writeFileSync(join(folder, "clang++"), compiler);
  chmodSync(join(folder, "clang++"), 0o755);
}

/** The environment variables that select the GPU of a folder that {@link prepare} filled. */
export const variablesOf = (folder: string): Record<string, string> => ({
  ORCHARD_METAL_DEVICE: "nvidia",
  ORCHARD_METAL_CUDA: join(folder, "libcuda.so.1"),
  ORCHARD_METAL_GPU_CLANG: join(folder, "clang++"),
  ORCHARD_METAL_CACHE: join(folder, "cache"),
  ORCHARD_CUBLAS: "none",
});

let runs = 0;

/** What a program printed, and the calls that it made. */
export interface Outcome {
  readonly results: Record<string, unknown>;
  readonly log: readonly string[];
  readonly errors: string;
}

/** Runs a program from this folder on the GPU stand-in. By default, there is no cuBLASLt. */
export function runOnStandin(
  folder: string,
  program: string,
  variables: Record<string, string>,
  words: readonly string[] = [],
): Outcome {
  const log = join(folder, `log${runs++}`);
  const child = Bun.spawnSync([...bunWords, join(import.meta.dir, program), ...words], {
    env: { ...process.env, ...variablesOf(folder), STANDIN_LOG: log, ...variables },
  });
  const text = child.stdout.toString();
  return {
    results: text ? (JSON.parse(text) as Record<string, unknown>) : {},
    log: existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [],
    errors: child.stderr.toString(),
  };
}
