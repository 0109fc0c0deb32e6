/** `orchard train` and `orchard generate` as processes: their output and files, and rejected arguments. */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkpointName } from "../../src/io/checkpoint/format.ts";
import { saveCheckpoint } from "../../src/io/checkpoint/save.ts";
import { saveSafetensors } from "../../src/io/safetensors/save.ts";
import { Linear } from "../../src/nn/layers/linear.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { Generator } from "../../src/random/generator.ts";
import type { SampleEvent } from "../../src/train/events.ts";
import { readLog } from "../../src/train/listeners/log.ts";
import { indented } from "../../src/train/listeners/progress.ts";
import { makeModel } from "../../src/train/model.ts";
import { presets } from "../../src/train/settings.ts";
import { limited, reaches, tiny, trainingCommands } from "./command.ts";

const { folder, text, environment, start, orchard, train, newRun } = trainingCommands();

describe("a run writes its files", () => {
  test("a run prints model, text, sample and code paths, and leaves log, curve and checkpoints", async () => {
    const run = newRun();
    const { out, err, exitCode } = await train(run, "--steps", "20");
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^model +gpt, 2 layers, 2 heads, width 16, context 16: \d+\.\dK parameters, float32$/m);
    expect(out).toMatch(/^text +1 file, 17\.\d KB, .*K tokens/m);
    expect(out).toMatch(/^backend +cpu$/m);
    expect(out).toMatch(
      /^finished at step 20: loss \d\.\d{4} nats per token, held out \d\.\d{4}, \d\.\d{3} bits per byte$/m,
    );
    expect(out).toMatch(/^sample:\n {2}│ export /m);
    const sample = readLog(run).find(({ kind }) => kind === "sample") as SampleEvent;
    expect(`${out}${err}`.split(indented(sample.prompt + sample.text))).toHaveLength(2); // the sample is shown once
    expect(out).toMatch(/^computed on cpu: \w+, \d+ threads?, .+\noperations {2}[\d,]+ on cpu\nfallbacks {3}none$/m);
    expect(out).not.toContain("flashAttention");
    expect(err).not.toContain("failed");
    expect(err).toMatch(/20\/20 │ \d\.\d{3} bits\/byte │ held out \d\.\d{3} │ .* tokens\/s │ .* left │ .* │ cpu/);
    expect(readdirSync(run).sort()).toEqual(["checkpoints", "log.jsonl", "loss.png", "loss.svg"]);
    expect(readLog(run).map(({ kind }) => kind)).toContainValues(["start", "step", "evaluation", "sample", "end"]);
    expect(readdirSync(join(run, "checkpoints")).sort()).toEqual([checkpointName(15), checkpointName(20)]);
  });

  test("a run of few steps, one layer and one head uses the singular, and adapts its warmup", async () => {
    const run = newRun();
    const shape = ["--layers", "1", "--heads", "1", "--batch", "1"];
    const { out, exitCode } = await train(run, "--steps", "5", ...shape);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^model +gpt, 1 layer, 1 head, width 16/m);
    expect(out).toMatch(/^text +1 file, /m);
    expect(out).toMatch(/^steps +to 5, of 1 window$/m);
    const again = await orchard("train", "--resume", run);
    // without a step there is no loss
    expect(again.out).toMatch(/^finished at step 5: held out \d\.\d{4}, \d\.\d{3} bits per byte$/m);
    expect(`${again.out}${again.err}`).not.toContain("NaN");
  });

  test("a run whose explicit warmup is too long is rejected", async () => {
    const { err, exitCode } = await train(newRun(), "--steps", "5", "--warmup", "5");
    expect([exitCode, err]).toEqual([1, "[train] expected warmup to be below the number of steps, 5, got 5\n"]);
  });

  test("a run with too little text to hold out has no held-out loss", async () => {
    const short = `${newRun()}.txt`;
    writeFileSync(short, "const x = 1;\n".repeat(8));
    const words = ["--preset", "tiny", "--width", "16", "--context", "16", "--steps", "2", "--sample-tokens", "5"];
    const { out, err, exitCode } = await orchard("train", short, ...words, "--out", newRun());
    expect(exitCode).toBe(0);
    expect(out).toContain("there will be no evaluation");
    expect(out).toMatch(/^finished at step 2: loss \d\.\d{4} nats per token$/m);
    expect(`${out}${err}`).not.toContain("NaN");
  });

  test("a run is rejected in a folder that contains a run", async () => {
    const run = newRun();
    await train(run, "--steps", "3");
    const { err, exitCode } = await train(run, "--steps", "3");
    expect(exitCode).toBe(1);
    expect(err).toContain(`${run} already has a run; resume it with --resume ${run}`);
  });

  test("a run with a dashboard prints its address, and serves it while it trains", async () => {
    const run = newRun();
    const child = start(["train", text, ...tiny, "--out", run, "--steps", "1000000", "--dashboard"]);
    await reaches(run, 1, child);
    const reader = child.stdout.getReader();
    let out = "";
    while (!out.includes("dashboard")) out += new TextDecoder().decode((await reader.read()).value);
    const url = /dashboard +(http\S+)/.exec(out)![1];
    expect(await (await fetch(url)).text()).toContain("Orchard: training");
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
  });
});

describe("a resumed run applies new settings", () => {
  test("a run resumed with other settings applies them, but not another shape", async () => {
    const run = newRun();
    await train(run, "--steps", "5");
    const longer = await orchard("train", "--resume", run, "--steps", "8");
    expect(longer.out).toMatch(/^finished at step 8/m);
    const wider = await orchard("train", "--resume", run, "--width", "32");
    expect([wider.exitCode, wider.err]).toEqual([1, expect.stringContaining("width: expected 16, got 32")]);
  });
});

describe("a disk that is full", () => {
  test("a full disk does not end a run, and is reported", async () => {
    const run = newRun();
    const words = ["train", text, ...tiny, "--width", "96", "--steps", "6", "--warmup", "1", "--out", run];
    const { stdout, stderr, exitCode } = limited(300, environment, ...words); // a checkpoint takes 3 MB
    expect(exitCode).toBe(1);
    expect(stderr.toString()).toContain("the run could not be saved");
    expect(stdout.toString()).toContain("finished at step 6");
    expect(stdout.toString()).toContain("not saved; the last checkpoint: none");
    expect(readdirSync(join(run, "checkpoints"))).toEqual([]);
  });
});

describe("invalid arguments are reported in one sentence", () => {
  const cases: readonly (readonly [string, () => string[], string])[] = [
    ["a folder that is not there", () => [join(folder, "nowhere")], "nowhere"],
    ["an empty file", () => [writeTo("empty.txt", "")], "empty"],
    ["a text shorter than the context", () => [writeTo("short.txt", "short")], "shorter context"],
    ["a binary file", () => [writeTo("binary.dat", "\0\x01\x02".repeat(100))], "binary"],
    ["heads that do not divide the width", () => [text, "--heads", "3"], "expected width to be a multiple of heads"],
    ["a dashboard's port that is none", () => [text, "--dashboard", "99999"], "99999"],
  ];
  test.each(cases)("%s is one sentence, and no folder is created", async (_, words, sentence) => {
    const run = newRun();
    const { out, err, exitCode } = await orchard("train", ...tiny, "--out", run, ...words());
    expect([exitCode, out]).toEqual([1, ""]);
    expect(err).toContain(sentence);
    expect(err).not.toContain("    at ");
    expect(existsSync(run)).toBe(false);
  });

  test("a missing run can't be resumed, nor used to generate", async () => {
    for (const words of [
      ["train", "--resume", folder],
      ["generate", folder],
    ]) {
      const { err, exitCode } = await orchard(...words);
      expect(exitCode).toBe(1);
      expect(err).toContain(`${folder} has no run`);
    }
  });

  const writeTo = (name: string, content: string) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
});

describe("the command generate continues a prompt", () => {
  test("generate continues the prompt, the same with the same seed, from a run or a checkpoint", async () => {
    const run = newRun();
    await train(run, "--steps", "5");
    const words = ["--prompt", "export const", "--tokens", "30", "--seed", "1"];
    const first = await orchard("generate", run, ...words);
    expect([first.exitCode, first.err]).toEqual([0, ""]);
    expect(first.out).toStartWith("export const");
    expect(first.out.length).toBeGreaterThan("export const".length + 5);
    const file = join(run, "checkpoints", checkpointName(5));
    expect(await orchard("generate", file, ...words)).toEqual(first);
    expect((await orchard("generate", run, ...words.with(5, "2"))).out).not.toBe(first.out);
  });

  describe("generate prints an error of one sentence", () => {
    const layer = (width: number) => ({ model: new Linear(width, width), step: 1 });
    const cases: readonly (readonly [string, (path: string) => Promise<unknown>, string])[] = [
      [
        "a file that is not a checkpoint",
        (path) => Bun.write(path, "export const x = 1;\n".repeat(10)),
        "is it a safetensors file?",
      ],
      [
        "an empty file",
        (path) => Bun.write(path, ""),
        "expected at least 8 bytes, which hold the header's length, got 0",
      ],
      [
        "weights that are not a checkpoint",
        (path) => saveSafetensors(path, { x: zeros([2]) }),
        "expected a checkpoint, got another safetensors file",
      ],
    ];
    test.each(cases)("the error for %s is one sentence", async (_, write, sentence) => {
      const path = `${newRun()}.safetensors`;
      await write(path);
      await checkRefused(path, sentence);
    });

    test("the error for a checkpoint that does not belong to a run is one sentence", async () => {
      const path = await saveCheckpoint(newRun(), layer(2));
      await checkRefused(path, `expected a checkpoint of a training run, got ${path}`);
    });

    test("the error for a checkpoint whose weights have another shape than its settings is one sentence", async () => {
      const extra = { settings: { ...presets.tiny, width: 16 }, scaler: null };
      const model = makeModel({ ...presets.tiny, width: 32 }, 256, new Generator(0));
      const path = await saveCheckpoint(newRun(), { model, step: 1, extra });
      await checkRefused(path, "tokenEmbedding.weight");
    });

    test.each([
      ["--tokens", "-1"],
      ["--temperature", "-1"],
      ["--top-p", "2"],
      ["--top-k", "0"],
    ])("the error for %s %s comes before the prompt", async (flag, value) => {
      const run = newRun();
      await saveRun(run);
      const { out, err, exitCode } = await orchard("generate", run, flag, value);
      expect([exitCode, out]).toEqual([1, ""]);
      expect(err).toMatch(/^\[generateText\] expected .*, got .*\n$/);
    });

    /** A checkpoint of a run that was not trained. */
    function saveRun(run: string): Promise<string> {
      const settings = { ...presets.tiny, width: 16 };
      const model = makeModel(settings, 256, new Generator(0));
      return saveCheckpoint(join(run, "checkpoints"), { model, step: 1, extra: { settings, scaler: null } });
    }

    async function checkRefused(path: string, sentence: string): Promise<void> {
      const { out, err, exitCode } = await orchard("generate", path);
      expect([exitCode, out]).toEqual([1, ""]);
      expect(err).toContain(sentence);
      expect(err).not.toContain("    at ");
    }
  });
});
