/** The entry `orchard-metal/train`: a run that a program starts, stops and resumes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { getBackend, setBackend } from "../../src/index.ts";
import { type Listener, type RunEvent, type TrainOptions, train } from "../../src/train/index.ts";
import { testFolder } from "../support/folder.ts";
import { small, train as trainSession } from "./trained.ts";

const { path: folder } = testFolder("train-entry");
const before = getBackend();
beforeAll(() => setBackend("cpu"));
afterAll(() => setBackend(before));

const lossesOf = (events: readonly RunEvent[]) => events.flatMap((each) => (each.kind === "step" ? [each.loss] : []));

/** Runs `train` and returns its result and the losses of its steps. */
async function run(options: TrainOptions, on: Listener["on"] = () => undefined) {
  const events: RunEvent[] = [];
  const listener = {
    on: (event: RunEvent) => {
      events.push(event);
      on(event);
    },
  };
  return { ...(await train({ ...options, listener })), losses: lossesOf(events) };
}

test("train has the losses of a session, also if it is stopped and resumed", async () => {
  const { losses: expected, heldOutLoss } = await trainSession("cpu", small);
  const out = join(folder, "whole");
  const whole = await run({ ...small, out });
  expect(whole).toMatchObject({ reason: "finished", step: small.steps, heldOutLoss, folder: out, losses: expected });
  expect(whole.tokenizer.vocabularySize).toBe(whole.model.vocabularySize);

  const stop = new AbortController();
  const stopAt2 = (event: RunEvent) => void (event.kind === "step" && event.step === 2 && stop.abort());
  const resume = join(folder, "stopped");
  const first = await run({ ...small, out: resume, signal: stop.signal }, stopAt2);
  expect(first).toMatchObject({ reason: "interrupted", step: 2 });
  const rest = await run({ resume });
  expect([...first.losses, ...rest.losses]).toEqual([...expected]);
});

test("settings that are not given are the preset's, and a listener that throws does not end the run", async () => {
  const listener = {
    on: () => {
      throw new Error("full");
    },
  };
  const out = join(folder, "preset");
  const { model, step } = await train({ preset: "tiny", data: small.data, steps: 1, width: 16, out, listener });
  expect([step, model.contextLength]).toEqual([1, 32]);
});

test.each([
  [{ step: 3 }, "unknownOption", 'did you mean "steps"?'],
  [{ tokenizer: "words" }, "unknownChoice", '"bytes", "gpt2" or "bpe"'],
  [{ data: "books" }, "invalidOption", "a list of files, folders and globs"],
  [{ preset: "tiny", width: 15 }, "invalidSetting", "a multiple of heads"],
  [{ resume: "runs/a", out: "runs/b" }, "invalidSetting", "no out and no preset beside resume"],
  [{ resume: join(folder, "none") }, "noRun", "has no run"],
])("train rejects %j with %s", async (options, code, message) => {
  const error = await train(options as unknown as TrainOptions).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ operation: "train", code });
  expect((error as Error).message).toContain(message);
});
