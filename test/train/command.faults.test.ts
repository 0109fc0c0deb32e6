/** Runs that are interrupted or killed: when resumed, they have the same losses as an undisturbed run. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { checkpointName, stepOf } from "../../src/io/checkpoint/format.ts";
import { readLog } from "../../src/train/listeners/log.ts";
import { limited, lossesOf, pointsDrawn, reaches, tiny, trainingCommands } from "./command.ts";

const { text, environment, start, orchard, train, newRun } = trainingCommands();

test("a run that is interrupted saves and stops; resumed, it has the same losses as one that was not", async () => {
  const [whole, stopped] = [newRun(), newRun()];
  const words = ["--steps", "200", "--dropout", "0.1", "--save-every", "0"];
  await train(whole, ...words);
  const child = start(["train", text, ...tiny, "--out", stopped, ...words]);
  await reaches(stopped, 3, child);
  child.kill("SIGINT");
  expect(await child.exited).toBe(130);
  const last = readLog(stopped).at(-1)!;
  expect(last).toMatchObject({ kind: "end", reason: "interrupted" });
  expect(readdirSync(join(stopped, "checkpoints"))).toContain(checkpointName(last.step));
  const { exitCode } = await orchard("train", "--resume", stopped);
  expect(exitCode).toBe(0);
  expect(lossesOf(stopped)).toEqual(lossesOf(whole));
});

test("a run that is killed resumes from its last valid checkpoint, with the same losses", async () => {
  const [whole, killed] = [newRun(), newRun()];
  await train(whole, "--steps", "40");
  const child = start(["train", text, ...tiny, "--out", killed, "--steps", "40"]);
  await reaches(killed, 16, child);
  child.kill("SIGKILL");
  await child.exited;
  const checkpoints = join(killed, "checkpoints");
  const newest = readdirSync(checkpoints)
    .filter((name) => /^checkpoint-\d+\.safetensors$/.test(name))
    .sort()
    .at(-1)!;
  truncateSync(join(checkpoints, newest), 1000);
  const { out, err, exitCode } = await orchard("train", "--resume", killed);
  expect(exitCode).toBe(0);
  expect(err).toContain(`skipped an invalid checkpoint`);
  expect(err).toContain(newest);
  expect(out).toMatch(/^steps +from \d+ to 40/m);
  expect(lossesOf(killed)).toEqual(lossesOf(whole));
  expect(pointsDrawn(killed)).toBe(40); // a step that ran twice is counted once
});

test("a full disk destroys no log, curve or checkpoint: with free space the run resumes from them", async () => {
  const [whole, run] = [newRun(), newRun()];
  const steps = ["--steps", "100"];
  await train(whole, ...steps);
  const first = start(["train", text, ...tiny, "--out", run, ...steps]);
  await reaches(run, 11, first);
  first.kill("SIGKILL");
  await first.exited;
  const saved = () => readdirSync(join(run, "checkpoints")).filter((name) => stepOf(name) !== undefined);
  const before = saved().sort();
  const { stderr, stdout, exitCode } = limited(20, environment, "train", "--resume", run);
  expect(exitCode).toBe(1);
  expect(stderr.toString()).toMatch(/JsonLog stopped: \[train\] .*log\.jsonl: .*\(EFBIG\)/);
  expect(stderr.toString()).toMatch(/the run could not be saved: .*\(EFBIG\)/);
  expect(stderr.toString()).toMatch(/CurveFiles failed to close: \[train\] .*loss\.png: .*\(EFBIG\)/);
  expect(stdout.toString()).toContain("finished at step 100");
  expect(saved().sort()).toEqual(before);
  expect(readdirSync(run).sort()).toEqual(["checkpoints", "log.jsonl", "loss.svg"]);
  expect(readFileSync(join(run, "loss.svg"), "utf8")).toEndWith("</svg>\n");
  expect(readFileSync(join(run, "log.jsonl"), "utf8")).not.toEndWith("\n");
  expect((await orchard("train", "--resume", run)).exitCode).toBe(0);
  expect(lossesOf(run)).toEqual(lossesOf(whole));
  expect(readLog(run).filter(({ kind }) => kind === "start")).toHaveLength(3);
  expect(pointsDrawn(run)).toBe(100);
  expect(readdirSync(run)).toContain("loss.png");
});
