/** Runs whose tokenizer is trained on their text: saved, resumed, used for generation, quantized. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer as HubTokenizer } from "@huggingface/tokenizers";
import { data } from "../../src/index.ts";
import { readLog } from "../../src/train/listeners/log.ts";
import { lossesOf, trainingCommands } from "./command.ts";

const { newRun, train, orchard, text } = trainingCommands();
const words = ["--tokenizer", "bpe", "--vocabulary", "300", "--prompt", "export"] as const;
const tokenizerIn = (run: string) => JSON.parse(readFileSync(join(run, "tokenizer.json"), "utf8"));

describe("a run with a trained tokenizer", () => {
  test("a run resumes with the tokens of its checkpoint and the losses of an uninterrupted run", async () => {
    const [whole, parted] = [newRun(), newRun()];
    const { out, exitCode } = await train(whole, "--steps", "10", ...words);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^tokens +300, trained on the text; \d\.\d\d bytes each$/m);
    expect((await train(parted, "--steps", "5", "--warmup", "2", ...words)).exitCode).toBe(0);
    expect(lossesOf(parted)).not.toEqual(lossesOf(whole).slice(0, 5)); // the schedules of learning rates differ

    const same = newRun();
    await train(same, "--steps", "10", ...words);
    for (const name of readdirSync(join(same, "checkpoints")).filter((file) => file.includes("10")))
      await Bun.file(join(same, "checkpoints", name)).delete();
    const log = readFileSync(join(same, "log.jsonl"), "utf8").split("\n");
    writeFileSync(join(same, "log.jsonl"), log.filter((line) => !/"step":(?:6|7|8|9|10),/.test(line)).join("\n"));
    expect(lossesOf(same)).toHaveLength(5);
    expect((await orchard("train", "--resume", same)).exitCode).toBe(0);
    expect(lossesOf(same)).toEqual(lossesOf(whole));
  });

  test("a run leaves a tokenizer.json that Hugging Face's library reads", async () => {
    const run = newRun();
    await train(run, "--steps", "2", ...words);
    const own = data.BpeTokenizer.fromJSON(tokenizerIn(run));
    const sample = "export const value12: number = 34;\n";
    expect(new HubTokenizer(tokenizerIn(run), {}).encode(sample).ids).toEqual(own.encode(sample));
    expect(own.vocabularySize).toBe(300);
  });

  test("a run generates from the trained model and from the quantized one", async () => {
    const run = newRun();
    await train(run, "--steps", "5", "--width", "32", "--heads", "1", ...words);
    const options = ["--tokens", "12", "--temperature", "0", "--prompt", "export const"] as const;
    const whole = await orchard("generate", run, ...options);
    expect([whole.exitCode, whole.err]).toEqual([0, ""]);
    expect(whole.out).toStartWith("export const");
    for (const file of ["q8_0.gguf", "affine8.safetensors"].map((name) => join(run, `model-${name}`))) {
      const format = file.endsWith(".gguf") ? ["q8_0"] : ["affine", "--bits", "8", "--group-size", "32"];
      expect((await orchard("quantize", run, "--out", file, "--format", ...format)).err).toBe("");
      const { out, exitCode } = await orchard("generate", file, ...options);
      expect(exitCode).toBe(0);
      expect(out).toStartWith("export const");
    }
  });

  test("a run reports its loss in bits per byte of the text", async () => {
    const run = newRun();
    await train(run, "--steps", "3", ...words);
    const events = readLog(run);
    const evaluation = events.findLast(({ kind }) => kind === "evaluation");
    if (evaluation?.kind !== "evaluation") throw new Error("expected an evaluation");
    const own = data.BpeTokenizer.fromJSON(tokenizerIn(run));
    const content = readFileSync(text, "utf8");
    const mean = new TextEncoder().encode(content).length / own.encode(content).length;
    const bits = evaluation.loss / Math.LN2 / mean;
    // the mean is of the whole text, not of the held-out part
    expect(Math.abs(evaluation.bitsPerByte! / bits - 1)).toBeLessThan(0.1);
    expect(Math.abs(evaluation.bitsPerByte! / (evaluation.loss / Math.LN2) - 1)).toBeGreaterThan(0.4);
  });
});
