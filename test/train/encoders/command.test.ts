/** `orchard train --task` as a process. */
import { expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nn } from "../../../src/index.ts";
import { folderOf } from "../../nn/tasks/models.ts";
import { lossesOf, trainingCommands } from "../command.ts";

const { folder, orchard } = trainingCommands();

test("a classifier trains, resumes and loads; other settings are rejected", async () => {
  const [model, data, run] = ["model", "labels.jsonl", "run"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await folderOf(model, "classify", { isBare: true });
  const line = (at: number) => JSON.stringify({ text: `the ${at % 2 ? "cat" : "house"} ${at}`, label: at % 2 });
  writeFileSync(data, Array.from({ length: 40 }, (_, at) => line(at)).join("\n"));
  const own = ["--task", "classify", "--model", model, "--data", data, "--batch", "8", "--learning-rate", "3e-3"];
  const { out, exitCode } = await orchard("train", ...own, "--steps", "20", "--out", run);
  expect(exitCode).toBe(0);
  expect(out).toMatch(/^task +classify: 40 records \(4 held out\), 2 labels$/m);
  expect(out).toContain("loss, in nats (o: held out):");
  expect(out).toContain("classify texts: nn.classify(model, texts)");
  expect(readdirSync(run).sort()).toEqual(["checkpoints", "log.jsonl", "loss.png", "loss.svg", "model"]);
  expect(lossesOf(run).at(-1)!).toBeLessThan(0.8 * lossesOf(run)[0]);
  const resumed = await orchard("train", "--resume", run, "--steps", "22");
  expect([resumed.exitCode, lossesOf(run).length]).toEqual([0, 22]);
  const { model: trained } = await nn.loadModel<nn.Encoder>(join(run, "model"));
  const [[best]] = (await nn.classify(trained, ["the cat 3"])) as [[nn.Classification]];
  expect(best.label).toBe("1");

  const errors = await Promise.all([
    orchard("train", ...own, "--prompt", "a"),
    orchard("train", "--scale", "3", "--data", data),
    orchard("train", "--task", "embed", "--data", data),
  ]);
  expect(errors.map((each) => [each.exitCode, each.err.trim()])).toEqual([
    [1, "[train] prompt can't be set with --task"],
    [1, "[train] --scale requires --task embed"],
    [1, "[train] --task requires --model with the folder of an encoder"],
  ]);
});
