/** Disturbs programs while they run. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../src/io/atomic.ts";
import { waitFor } from "../support/wait.ts";
import { type Command, type Launched, programWords, resultsIn, saidBy, spawn } from "./launch.ts";

/** The error that a rank received. */
export interface Learned {
  readonly code: string;
  readonly message: string;
  readonly ranks: readonly number[];
}

/** The processes of a world, and their hosts. */
export interface World {
  readonly pids: readonly number[];
  readonly hosts: readonly string[];
}

export interface Disturbing {
  readonly variables?: Readonly<Record<string, string>>;
  /**
   * The ranks that must end; then the launcher is killed, since it may wait forever. If there are neither survivors nor
   * learners, the launcher must end without being killed.
   */
  readonly survivors?: readonly number[] | undefined;
  /** The ranks that must receive the error; then they and the launcher are killed. */
  readonly learners?: readonly number[] | undefined;
  /** Called once the survivors have ended, or the learners have received the error: kills the remaining processes. */
  readonly afterwards?: () => Promise<void> | undefined;
}

/**
 * Runs `programs/faults.ts`, disturbs it once all ranks exchange gradients, waits until all have ended, and returns
 * each rank's errors.
 */
export async function disturbed(
  folder: string,
  ranks: number,
  commandOf: (words: readonly string[]) => Command,
  disturb: (world: World, launcher: Launched) => void,
  { variables = {}, survivors, learners, afterwards = async () => undefined }: Disturbing = {},
): Promise<{ learned: (Learned | undefined)[]; text: string; status: number; world: World }> {
  const ready = Array.from({ length: ranks }, (_, rank) => join(folder, `ready-${rank}.json`));
  for (const [rank, file] of ready.entries())
    for (const each of [file, join(folder, `rank-${rank}.json`)]) rmSync(each, { force: true });
  const child = spawn(commandOf(programWords("faults.ts", folder)), { ORCHARD_MPI_HEARTBEAT: "1", ...variables });
  const said = saidBy(child);
  const isReady = async () => {
    if (ready.every((file) => existsSync(file) && readFileSync(file, "utf8").endsWith("}"))) return true;
    if (child.exitCode !== null) throw new Error(`the ranks ended before they were disturbed: ${(await said).text}`);
    return false;
  };
  await waitFor(`the exchanges of ${ranks} ranks`, isReady, { state: () => ready.filter((file) => existsSync(file)) });
  const world = JSON.parse(readFileSync(ready[0], "utf8")) as World;
  disturb(world, child);
  const learned = () => resultsIn<Learned>(folder, ranks);
  const isOver = () => {
    if (learners) return learned().filter((each) => each !== undefined).length === learners.length;
    return survivors ? survivors.every((rank) => !isAlive(world.pids[rank])) : child.exitCode !== null;
  };
  await waitFor("all ranks to learn of the fault, or to end", isOver, { state: learned });
  if (survivors ?? learners) child.kill("SIGKILL");
  if (learners) for (const rank of learners) if (isAlive(world.pids[rank])) process.kill(world.pids[rank], "SIGKILL");
  await afterwards();
  const { text, status } = await said;
  return { learned: learned(), text, status, world };
}

/** Waits until none of these processes is left. */
export const untilEnded = (pids: () => readonly number[]): Promise<true> =>
  waitFor("the end of all processes", () => pids().length === 0, { state: pids });

/** The error that a rank receives about another one. */
export const lostBy = (rank: number, { pids, hosts }: World, what: string): Learned => ({
  code: "rankLost",
  ranks: [rank],
  message: `rank ${rank} (process ${pids[rank]} on ${hosts[rank]}) ${what}, while this rank waited`,
});

/** The error that a rank received, without the operation. */
export const plain = (learned: Learned | undefined): Learned | undefined =>
  learned && { ...learned, message: learned.message.replace(/^\[\w+\] /, "") };
