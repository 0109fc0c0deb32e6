/** `orchard train` on several ranks has the same losses as one process, and ends if one of its ranks ends. */
import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../src/io/atomic.ts";
import { loadRun } from "../../src/train/session.ts";
import { within } from "../support/wait.ts";
import { type Child, lossesOf, outputOf, reaches, tiny, trainingCommands } from "../train/command.ts";
import { untilEnded } from "./disturb.ts";
import { Hosts } from "./hosts.ts";
import { type Installation, launch, mpich, openMpi, spawn } from "./launch.ts";

const { folder, text, environment, orchard, train, newRun } = trainingCommands();
const plain = ["--dropout", "0", "--evaluate-every", "0", "--sample-tokens", "2"];

const trainWords = (run: string, ...words: readonly string[]) =>
  ["src/cli/orchard.ts", "train", text, ...tiny, "--out", run, ...words] as const;

/** Starts a run on ranks. */
const start = (
  installation: Installation,
  ranks: number,
  run: string,
  words: readonly string[],
  variables: Readonly<Record<string, string>> = {},
) =>
  launch(installation, ranks, trainWords(run, ...words), {
    XDG_CACHE_HOME: environment.XDG_CACHE_HOME,
    ...variables,
  });

async function trained(installation: Installation, ranks: number, ...words: readonly string[]): Promise<string> {
  const run = newRun();
  const { out, err, exitCode } = await outputOf(start(installation, ranks, run, words));
  expect({ exitCode, out: exitCode === 0 ? "" : `${out}${err}` }).toEqual({ exitCode: 0, out: "" });
  return run;
}

/** Losses are means of float32 numbers near 5: they may differ by rounding errors, which grow over the steps. */
const differ = (a: readonly number[], b: readonly number[]): number =>
  a.length === b.length ? Math.max(...a.map((loss, at) => Math.abs(loss / b[at] - 1))) : Number.POSITIVE_INFINITY;
const ROUNDING = 64 * 2 ** -24;

describe.skipIf(openMpi.missing !== undefined)("ranks of Open MPI", () => {
  test("ranks have the same losses as one process, also with unequal shares of a batch", async () => {
    const words = [...plain, "--batch", "14", "--steps", "8", "--save-every", "0"]; // four ranks get 3, 4, 3 and 4
    const alone = newRun();
    const [, run] = await Promise.all([train(alone, ...words), trained(openMpi, 4, ...words)]);
    expect(lossesOf(alone)).toHaveLength(8);
    expect(differ(lossesOf(run), lossesOf(alone))).toBeLessThan(ROUNDING);
  });

  test("losses of ranks are bit-identical in each run, with dropout and accumulation", async () => {
    const words = [...plain, "--batch", "12", "--steps", "4", "--dropout", "0.2", "--accumulate", "2"];
    const [first, second] = await Promise.all([trained(openMpi, 2, ...words), trained(openMpi, 2, ...words)]);
    expect(lossesOf(first)).toHaveLength(4);
    expect(lossesOf(first)).toEqual(lossesOf(second));
  });
});

/** Finds the process of a rank: a descendant of the launcher, recognized by its environment. */
function pidOf(launcher: number, rank: number): number {
  const children = (pid: number): number[] =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  const all = (pid: number): number[] => [pid, ...children(pid).flatMap(all)];
  const isRank = (pid: number): boolean => {
    if (readlinkSync(`/proc/${pid}/exe`) !== readlinkSync("/proc/self/exe")) return false;
    const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return variables.some((line) => line === `OMPI_COMM_WORLD_RANK=${rank}` || line === `PMI_RANK=${rank}`);
  };
  return all(launcher).find(isRank)!;
}

/** A run long enough to be disturbed. */
const long = [...plain, "--batch", "4", "--steps", "40", "--save-every", "5"];

let undisturbed: Promise<readonly number[]> | undefined;
const wholeRun = (installation: Installation) =>
  (undisturbed ??= trained(installation, 2, ...long).then((run) => lossesOf(run)));

/** Disturbs two ranks after some steps, and returns the output until all have ended. */
async function disturbed(run: string, child: Child, disturb: (launcher: number) => void) {
  await reaches(run, 11, child);
  disturb(child.pid);
  const { out, err, exitCode } = await within("the end of all ranks", outputOf(child));
  return { said: `${out}${err}`, exitCode };
}

/** Every checkpoint is complete, and none is half-written. */
async function expectCheckpoints(run: string): Promise<void> {
  const names = readdirSync(join(run, "checkpoints"));
  expect(names.filter((name) => !/^checkpoint-\d+\.safetensors$/.test(name))).toEqual([]);
  for (const name of names) await loadRun(join(run, "checkpoints", name));
}

/** Resumes on two ranks: the losses match an undisturbed run. */
async function expectToResume(installation: Installation, run: string): Promise<void> {
  await expectCheckpoints(run);
  const child = launch(installation, 2, ["src/cli/orchard.ts", "train", "--resume", run], environment);
  expect((await outputOf(child)).exitCode).toBe(0);
  expect(lossesOf(run)).toEqual([...(await wholeRun(installation))]);
}

for (const [installation, rank] of [
  [openMpi, 0],
  [mpich, 1],
] as const)
  describe.skipIf(installation.missing !== undefined || process.platform !== "linux")(
    `a run trains on ranks of ${installation.name}`,
    () => {
      test(`a run ends within seconds when rank ${rank} is killed, and resumes with the same losses`, async () => {
        const run = newRun();
        let pid = 0;
        const { said, exitCode } = await disturbed(run, start(installation, 2, run, long), (launcher) => {
          pid = pidOf(launcher, rank);
          process.kill(pid, "SIGKILL");
        });
        expect(exitCode).not.toBe(0);
        if (installation === openMpi) expect(said).toMatch(new RegExp(`process rank ${rank} .* exited on signal 9`));
        // UCX aborts a rank that was just reading the killed rank's memory, and names the rank that it aborts
        else expect(said).toMatch(new RegExp(`PID ${pid} RUNNING AT|process_vm_readv\\(pid=${pid}\\b`));
        const ranks = /^ranks +2 on one host, .*: processes (\d+), (\d+)$/m.exec(said)!;
        expect(Number(ranks[rank + 1])).toBe(pid);
        await expectToResume(installation, run);
      });

      test.each(installation === openMpi ? ["SIGTERM"] : ["SIGINT"])(
        "a run saves and ends when one rank gets %s, and resumes as one process at the same place",
        async (signal) => {
          const run = newRun();
          const child = start(installation, 2, run, long);
          const { said } = await disturbed(run, child, (launcher) => process.kill(pidOf(launcher, 1), signal));
          expect(said).toMatch(/^interrupted at step \d+/m);
          await expectCheckpoints(run);
          if (installation !== openMpi) return;
          expect((await orchard("train", "--resume", run)).exitCode).toBe(0);
          const whole = await wholeRun(installation);
          expect(lossesOf(run).slice(0, 11)).toEqual(whole.slice(0, 11));
          expect(differ(lossesOf(run), whole)).toBeLessThan(4 * ROUNDING);
        },
      );
    },
  );

describe.skipIf(openMpi.missing !== undefined || process.platform !== "linux")(
  "a run trains on ranks of Open MPI",
  () => {
    test("a run ends when the launcher gets Ctrl-C, and resumes with the same losses", async () => {
      const run = newRun();
      const child = start(openMpi, 2, run, long);
      const { exitCode } = await disturbed(run, child, (launcher) => process.kill(launcher, "SIGINT"));
      expect(exitCode).not.toBe(0);
      await expectToResume(openMpi, run);
    });
  },
);

const hosts = new Hosts(folder);
afterAll(() => hosts[Symbol.dispose]());

describe.skipIf((openMpi.missing ?? hosts.missing) !== undefined)("a run on two hosts", () => {
  test("a run ends when the cable is disconnected, names the rank, and resumes on one host", async () => {
    const run = newRun();
    const command = hosts.command(openMpi, trainWords(run, ...long));
    const child = spawn(command, { XDG_CACHE_HOME: environment.XDG_CACHE_HOME, ORCHARD_MPI_HEARTBEAT: "1" });
    const said = outputOf(child);
    await reaches(run, 11, child);
    const pids = hosts.pids(hosts.first).filter((pid) => readlinkSync(`/proc/${pid}/exe`) === process.execPath);
    hosts.cut();
    await untilEnded(() => pids.filter(isAlive));
    child.kill("SIGKILL"); // the launcher may wait for the other host
    hosts.fail(hosts.second);
    const { out, err } = await said;
    const who = `rank 1 \\(process \\d+ on ${hosts.second.namespace}\\) has been silent for 1 s`;
    expect(`${out}${err}`).toMatch(new RegExp(who));
    await expectToResume(openMpi, run);
  });
});
