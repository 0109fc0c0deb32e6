/** Runs programs as ranks of MPI. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import type { Installation } from "./installations.ts";
import { fromJson } from "./json.ts";

export { type Installation, mpich, openMpi, openMpi5, standardAbi } from "./installations.ts";

import { bunWords } from "../support/program.ts";

/** Permits root and more ranks than processors, as in tests; Open MPI 4 and 5 read different names. */
const permissions = {
  OMPI_ALLOW_RUN_AS_ROOT: "1",
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1",
  OMPI_MCA_rmaps_base_oversubscribe: "1",
  PRTE_MCA_rmaps_default_mapping_policy: ":oversubscribe",
  OMPI_MCA_hwloc_base_binding_policy: "none",
  OMPI_MCA_btl_vader_single_copy_mechanism: "none", // containers forbid ptrace
  OMPI_MCA_btl: "self,vader,tcp",
  OMPI_MCA_pml: "ob1",
  ORCHARD_BACKEND: "cpu",
  ORCHARD_CPU_THREADS: "1",
};

type Variables = Readonly<Record<string, string | undefined>>;

/** The command line and environment that start a command as ranks. */
export interface Command {
  readonly words: readonly string[];
  readonly environment: Variables;
}

/** Builds a command as ranks of this machine. @param options for the launcher */
export const localCommand = (
  { launcher, environment }: Installation,
  ranks: number,
  words: readonly string[],
  options: readonly string[] = [],
): Command => ({
  words: [launcher, ...options, "-n", String(ranks), ...bunWords, ...words],
  environment,
});

/** Starts the ranks of a command. */
export const spawn = ({ words, environment }: Command, variables: Variables = {}) =>
  Bun.spawn([...words], {
    ...({ stdout: "pipe", stderr: "pipe" } as const),
    cwd: packageRoot,
    env: { ...process.env, ...permissions, NODE_ENV: undefined, ...environment, ...variables },
  });

export type Launched = ReturnType<typeof spawn>;

/** Starts a command as ranks of this machine. */
export const launch = (
  installation: Installation,
  ranks: number,
  words: readonly string[],
  variables: Variables = {},
): Launched => spawn(localCommand(installation, ranks, words), variables);

/** The command line that starts a program in `programs`, which receives the folder for its results. */
export const programWords = (program: string, folder: string): string[] => [
  join(packageRoot, "test/distributed/programs", program),
  folder,
];

/** The results of a program's ranks: each writes a JSON file; undefined if it wrote none. */
export const resultsIn = <Result>(folder: string, ranks: number): (Result | undefined)[] =>
  Array.from({ length: ranks }, (_, rank) => {
    const file = join(folder, `rank-${rank}.json`);
    return existsSync(file) && readFileSync(file, "utf8").endsWith("}")
      ? (JSON.parse(readFileSync(file, "utf8"), fromJson) as Result)
      : undefined;
  });

/** The output of a launcher and its ranks until they end. */
export async function saidBy(child: Launched): Promise<{ readonly text: string; readonly status: number }> {
  const [out, err, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { text: `${out}${err}`, status };
}

/** Runs a program of `programs` to its end. */
export async function runProgram<Result>(
  installation: Installation,
  ranks: number,
  program: string,
  folder: string,
  variables: Variables = {},
): Promise<{ readonly ranks: readonly Result[]; readonly text: string; readonly status: number }> {
  for (let rank = 0; rank < ranks; rank++) rmSync(join(folder, `rank-${rank}.json`), { force: true });
  const said = await saidBy(launch(installation, ranks, programWords(program, folder), variables));
  return { ranks: resultsIn<Result>(folder, ranks) as Result[], ...said };
}
