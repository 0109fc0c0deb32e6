/** `orchard train` on ranks: the losses of one process, and what becomes of a run whose ranks end. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { loadRun } from "../../src/train/session.ts";
import { lossesOf, outputOf, reaches, tiny, trainingCommands } from "../train/command.ts";
import { type Installation, launch, mpich, openMpi } from "./launch.ts";

const { text, environment, orchard, train, newRun } = trainingCommands();
const plain = ["--dropout", "0", "--evaluate-every", "0", "--sample-tokens", "2"];
const short = [...plain, "--batch", "12", "--steps", "12", "--save-every", "4"];

/** Starts a run on ranks. */
const start = (installation: Installation, ranks: number, run: string, ...words: readonly string[]) =>
  launch(installation, ranks, ["src/cli/orchard.ts", "train", text, ...tiny, "--out", run, ...words], {
    XDG_CACHE_HOME: environment.XDG_CACHE_HOME,
  });

async function trained(installation: Installation, ranks: number, ...words: readonly string[]): Promise<string> {
  const run = newRun();
  const { out, err, exitCode } = await outputOf(start(installation, ranks, run, ...words));
  expect({ exitCode, out: exitCode === 0 ? "" : `${out}${err}` }).toEqual({ exitCode: 0, out: "" });
  return run;
}

/** Losses are means of float32 numbers near 5: they may differ by roundings, which steps carry on. */
const differ = (a: readonly number[], b: readonly number[]): number =>
  a.length === b.length ? Math.max(...a.map((loss, at) => Math.abs(loss / b[at]! - 1))) : Number.POSITIVE_INFINITY;
const ROUNDING = 64 * 2 ** -24;

describe.skipIf(openMpi.missing !== undefined)("ranks of Open MPI", () => {
  test("have the losses of one process with all windows, in shares that are not equal too", async () => {
    const alone = newRun();
    await train(alone, ...short);
    const expected = lossesOf(alone);
    expect(expected).toHaveLength(12);
    for (const ranks of [4, 5]) // 12 windows are 2, 2, 3, 2, 3 of five
      expect(differ(lossesOf(await trained(openMpi, ranks, ...short)), expected)).toBeLessThan(ROUNDING);
  }, 120_000);

  test("have bitwise the same losses in each run, with dropout and accumulation", async () => {
    const words = [...short, "--dropout", "0.2", "--accumulate", "2", "--steps", "6"];
    const [first, second] = [await trained(openMpi, 3, ...words), await trained(openMpi, 3, ...words)];
    expect(lossesOf(first)).toHaveLength(6);
    expect(lossesOf(first)).toEqual(lossesOf(second));
  }, 120_000);
});

/** The process of a rank: a descendant of the launcher, known by what the launcher told it. */
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
/** How soon the other ranks have to end. */
const SECONDS = 20;

let undisturbed: Promise<readonly number[]> | undefined;
const wholeRun = (installation: Installation) =>
  (undisturbed ??= trained(installation, 2, ...long).then((run) => lossesOf(run)));

/** Starts two ranks, disturbs them after some steps, and returns what was said until all had ended. */
async function disturbed(installation: Installation, run: string, disturb: (launcher: number) => void) {
  const child = start(installation, 2, run, ...long);
  await reaches(run, 11, child);
  disturb(child.pid);
  const since = performance.now();
  const { out, err, exitCode } = await outputOf(child);
  expect(performance.now() - since).toBeLessThan(SECONDS * 1000);
  return { said: `${out}${err}`, exitCode };
}

/** Resumes on two ranks: every checkpoint is whole, and the losses are those of a run that was left alone. */
async function expectToResume(installation: Installation, run: string): Promise<void> {
  const names = readdirSync(join(run, "checkpoints"));
  expect(names.filter((name) => !/^checkpoint-\d+\.safetensors$/.test(name))).toEqual([]);
  for (const name of names) await loadRun(join(run, "checkpoints", name));
  const child = launch(installation, 2, ["src/cli/orchard.ts", "train", "--resume", run], environment);
  expect((await outputOf(child)).exitCode).toBe(0);
  expect(lossesOf(run)).toEqual([...(await wholeRun(installation))]);
}

for (const installation of [openMpi, mpich])
  describe.skipIf(installation.missing !== undefined || process.platform !== "linux")(
    `a run on ranks of ${installation.name}`,
    () => {
      test.each(installation === openMpi ? [0, 1] : [1])(
        "ends soon when rank %d is killed, and resumes with the same losses",
        async (rank) => {
          const run = newRun();
          let pid = 0;
          const { said, exitCode } = await disturbed(installation, run, (launcher) => {
            pid = pidOf(launcher, rank);
            process.kill(pid, "SIGKILL");
          });
          expect(exitCode).not.toBe(0);
          if (installation === openMpi) expect(said).toMatch(new RegExp(`process rank ${rank} .* exited on signal 9`));
          else expect(said).toContain(`PID ${pid} RUNNING AT`);
          const ranks = /^ranks +2 on one host, .*: processes (\d+), (\d+)$/m.exec(said)!;
          expect(Number(ranks[rank + 1])).toBe(pid);
          await expectToResume(installation, run);
        },
        120_000,
      );

      test("saves and ends when one rank gets a signal, and resumes as one process at the same place", async () => {
        const run = newRun();
        const { said } = await disturbed(installation, run, (launcher) => process.kill(pidOf(launcher, 1), "SIGTERM"));
        expect(said).toMatch(/^interrupted at step \d+/m);
        expect((await orchard("train", "--resume", run)).exitCode).toBe(0);
        const whole = await wholeRun(installation);
        expect(lossesOf(run).slice(0, 11)).toEqual(whole.slice(0, 11));
        expect(differ(lossesOf(run), whole)).toBeLessThan(4 * ROUNDING);
      }, 120_000);
    },
  );
