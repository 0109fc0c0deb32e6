/** Two processes that use one run: the second is rejected until the first has ended in any way. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LOCK_FILE } from "../../src/io/lock.ts";
import { readLog } from "../../src/train/listeners/log.ts";
import { waitFor } from "../support/wait.ts";
import { lossesOf, outputOf, reaches, tiny, trainingCommands } from "./command.ts";

const { text, start, orchard, train, newRun } = trainingCommands();
const startsOf = (run: string) => readLog(run).filter(({ kind }) => kind === "start").length;

describe("a run that a process is training", () => {
  test("a run that is being trained can't be resumed by another process: the error names both", async () => {
    const [whole, run] = [newRun(), newRun()];
    await train(whole, "--steps", "300", "--save-every", "0");
    const first = start(["train", text, ...tiny, "--out", run, "--steps", "300", "--save-every", "0"]);
    await reaches(run, 3, first);
    first.kill("SIGSTOP"); // otherwise it might end before the other processes have tried
    for (const words of [
      ["--resume", run],
      ["--resume", "--out", run],
    ]) {
      const { out, err, exitCode } = await orchard("train", ...words);
      expect([out, exitCode]).toEqual(["", 1]);
      expect(err).toBe(`[train] ${run}: process ${first.pid} is using it; wait until it ends, or end it\n`);
    }
    first.kill("SIGCONT");
    expect((await outputOf(first)).exitCode).toBe(0);
    expect([startsOf(run), existsSync(join(run, LOCK_FILE))]).toEqual([1, false]);
    expect(lossesOf(run)).toEqual(lossesOf(whole));
  });

  test("a run is free after kill -9 of its process, and only one of two processes can then resume it", async () => {
    const [whole, run] = [newRun(), newRun()];
    await train(whole, "--steps", "300");
    const first = start(["train", text, ...tiny, "--out", run, "--steps", "300"]);
    await reaches(run, 8, first);
    first.kill("SIGKILL");
    await first.exited;
    // the file remains, but is unlocked
    expect(JSON.parse(readFileSync(join(run, LOCK_FILE), "utf8"))).toMatchObject({ pid: first.pid });
    const both = [start(["train", "--resume", run]), start(["train", "--resume", run])];
    const winner = await waitFor("one of the processes to lock the run", () =>
      both.find(({ pid }) => new RegExp(`"pid":\\s*${pid}\\b`).test(readFileSync(join(run, LOCK_FILE), "utf8"))),
    );
    winner.kill("SIGSTOP"); // otherwise it might end before the other process has tried
    const refused = await outputOf(both.find((each) => each !== winner)!);
    winner.kill("SIGCONT");
    expect([refused.exitCode, (await outputOf(winner)).exitCode]).toEqual([1, 0]);
    expect(refused.err).toContain(`${run}: process ${winner.pid} is using it`);
    expect(startsOf(run)).toBe(2);
    expect(lossesOf(run)).toEqual(lossesOf(whole));
    expect(existsSync(join(run, LOCK_FILE))).toBe(false);
  });
});
