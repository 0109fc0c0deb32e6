/** The listeners of a run: the log, the progress bar, and what happens if one of them fails. */
import { describe, expect, spyOn, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formatBytes, formatCount, formatDuration } from "../../src/core/format.ts";
import { packageRoot } from "../../src/core/paths.ts";
import type { Listener, RunEvent } from "../../src/train/events.ts";
import { Listeners } from "../../src/train/listeners/all.ts";
import { JsonLog, LOG_FILE } from "../../src/train/listeners/log.ts";
import { Pace } from "../../src/train/pace.ts";
import { progressLine } from "../../src/train/progress_line.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { startEvent, stepEvent } from "./events.ts";

const { path: folder } = testFolder("listeners");

test("the log has a line of JSON for each event, of later sessions too; numbers that are not finite are words", () => {
  const begun = Date.now();
  for (const events of [[startEvent, stepEvent(1, { loss: Number.NaN })], [stepEvent(2)]]) {
    const log = new JsonLog(folder);
    for (const event of events) log.on(event);
    log.close();
  }
  const lines = readFileSync(join(folder, LOG_FILE), "utf8").trim().split("\n");
  const parsed = lines.map((line) => JSON.parse(line) as RunEvent & { time: string });
  expect(parsed.map(({ kind, step }) => [kind, step])).toEqual([
    ["start", 0],
    ["step", 1],
    ["step", 2],
  ]);
  expect(parsed[1]).toMatchObject({ loss: "NaN", learningRate: 1e-3, tokensPerSecond: 45_678 });
  const times = parsed.map(({ time }) => Date.parse(time));
  expect([begun, ...times, Date.now()]).toEqual([begun, ...times, Date.now()].toSorted((one, other) => one - other));
});

test("the bar shows loss, held-out loss, speed, time left, memory and backend; samples and notes are lines", () => {
  const program = `
    import { ProgressBar } from "./src/train/listeners/progress.ts";
    import { startEvent, stepEvent } from "./test/train/events.ts";
    const bar = new ProgressBar();
    for (const event of [startEvent, stepEvent(1), { kind: "evaluation", step: 1, loss: 9, bitsPerByte: 4.5678 },
      { kind: "sample", step: 1, prompt: "ex", text: "port\\nlet" }, { kind: "note", step: 1, text: "mind this" },
      { kind: "checkpoint", step: 1, file: "a.safetensors" }, { kind: "end", step: 1, reason: "finished" }])
      bar.on(event);
    bar.close();`;
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "-e", program], { cwd: packageRoot });
  expect([stdout.toString(), exitCode]).toEqual(["", 0]);
  const shown = stderr.toString();
  expect(shown).toContain("1/400 │ 5.000 bits/byte │ held out 4.568 │ 45.7K tokens/s │ 1 min 1 s left │ 3.0 MB │ cpu");
  expect(shown).toContain("step 1, sample:\n  │ export\n  │ let\n");
  expect(shown).toContain("step 1: mind this\n");
  expect(shown).toContain("step 1, saved: a.safetensors\n");
});

describe("the line of progress shows the state", () => {
  const figures = {
    loss: "loss 1.234",
    heldOut: "2.345",
    speed: "45.7K",
    left: "12 min 30 s",
    memory: "123.4 MB",
    backend: "reference",
  };
  const at = (width: number) => progressLine(width, 1234, 2000, figures);

  test("the line has all figures if they fit, and never exceeds the columns", () => {
    expect(at(Number.POSITIVE_INFINITY)).toBe(
      "████████████░░░░░░░░ 1234/2000 │ loss 1.234 │ held out 2.345 │ 45.7K tokens/s │ 12 min 30 s left" +
        " │ 123.4 MB │ reference",
    );
    for (let width = 9; width < 200; width++) expect([width, at(width).length <= width]).toEqual([width, true]);
  });

  test("the line drops the least important figures first", () => {
    expect(at(97)).toBe(
      "██████░░░░ 1234/2000 │ loss 1.234 │ held out 2.345 │ 45.7K tokens/s │ 12 min 30 s left │ 123.4 MB",
    );
    expect(at(79)).toBe("████████████░░░░░░░░ 1234/2000 │ loss 1.234 │ held out 2.345 │ 12 min 30 s left");
    expect(at(39)).toBe("██████████░░░░░░ 1234/2000 │ loss 1.234");
    expect(at(12)).toBe("1234/2000");
  });

  test.each([40, 80, 120])(
    "in a terminal of %d columns, the line fills one row, and is redrawn in place",
    async (cols) => {
      let shown = "";
      const data = (_: unknown, bytes: Uint8Array) => {
        shown += Buffer.from(bytes).toString();
      };
      const program = `
      import { ProgressBar } from "./src/train/listeners/progress.ts";
      import { startEvent, stepEvent } from "./test/train/events.ts";
      const bar = new ProgressBar();
      bar.on(startEvent);
      for (let step = 1; step <= 4; step++) { bar.on(stepEvent(step)); await Bun.sleep(150); }
      bar.on({ kind: "evaluation", step: 4, loss: 9, bitsPerByte: 4.5678 });
      bar.on({ kind: "end", step: 4, reason: "finished" });`;
      const child = Bun.spawn([...bunWords, "-e", program], {
        cwd: packageRoot,
        terminal: { cols, rows: 24, data },
      });
      expect(await child.exited).toBe(0);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal is controlled by them
      const rows = shown.split(/\r?\n|\r|\x1b\[1G/).map((row) => row.replaceAll(/\x1b\[[?\d;]*[A-Za-z]/g, ""));
      const drawn = rows.filter((row) => row.includes("/400"));
      expect(drawn.length).toBeGreaterThan(3);
      for (const row of drawn) expect(row.length).toBeLessThan(cols);
      expect(shown.trimEnd().split("\n")).toHaveLength(1); // everything fits the first row
      expect(drawn.at(-1)).toContain("4/400 │ 2.000 bits/byte");
      expect(drawn.at(-1)!.includes("held out 4.568")).toBe(cols >= 80);
      expect(drawn.at(-1)!.includes("│ cpu")).toBe(cols >= 120);
    },
  );
});

test("the sample of the last step is left to the summary", () => {
  const program = `
    import { ProgressBar } from "./src/train/listeners/progress.ts";
    import { startEvent, stepEvent } from "./test/train/events.ts";
    const bar = new ProgressBar();
    for (const step of [399, 400]) {
      if (step === 399) bar.on(startEvent);
      bar.on(stepEvent(step));
      bar.on({ kind: "sample", step, prompt: "text ", text: \`of \${step}\` });
    }
    bar.on({ kind: "end", step: 400, reason: "finished" });`;
  const { stderr } = Bun.spawnSync([...bunWords, "-e", program], { cwd: packageRoot });
  expect(stderr.toString()).toContain("text of 399");
  expect(stderr.toString()).not.toContain("text of 400");
});

describe("several listeners hear the same events", () => {
  const recorder = () => {
    const received: RunEvent[] = [];
    return { received, on: (event: RunEvent) => void received.push(event) };
  };

  test("listeners receive events in order; one that fails gets no more, and the others get a note", () => {
    class Failing implements Listener {
      calls = 0;
      on(): void {
        this.calls++;
        throw new Error("no space left on device");
      }
    }
    const [failing, other] = [new Failing(), recorder()];
    const listeners = new Listeners([failing, other]);
    for (const step of [1, 2]) listeners.on(stepEvent(step));
    expect(failing.calls).toBe(1);
    expect(other.received).toEqual([
      { kind: "note", step: 1, text: "Failing stopped: no space left on device" },
      stepEvent(1),
      stepEvent(2),
    ]);
  });

  test("listeners are all closed, also after one that fails to close", async () => {
    const said = spyOn(console, "error").mockImplementation(() => undefined);
    let closed = 0;
    const broken: Listener = { on: () => undefined, close: () => Promise.reject(new Error("broken")) };
    const good: Listener = { on: () => undefined, close: () => void closed++ };
    await new Listeners([broken, good]).close();
    expect(closed).toBe(1);
    expect(said.mock.calls).toEqual([["Object failed to close: broken"]]);
    said.mockRestore();
  });
});

test("the pace matches the latest steps, and does not begin at 0", () => {
  let now = 0;
  const pace = new Pace(() => now);
  const lap = (milliseconds: number) => {
    pace.start();
    now += milliseconds;
    return pace.lap();
  };
  expect(lap(200)).toBeCloseTo(0.2, 10);
  now += 60_000; // an evaluation
  for (let k = 0; k < 19; k++) lap(200);
  expect(lap(200)).toBeCloseTo(0.2, 10);
  for (let k = 0; k < 20; k++) lap(100);
  const half = lap(100);
  expect(half).toBeGreaterThan(0.12);
  expect(half).toBeLessThan(0.14); // 20 steps of 0.2 weigh about half as much as 21 of 0.1
});

test("numbers are printed in readable form", () => {
  expect([0, 1023, 1024, 3 * 2 ** 20, 2 ** 50].map(formatBytes)).toEqual([
    "0 B",
    "1023 B",
    "1.0 KB",
    "3.0 MB",
    "1024.0 TB",
  ]);
  expect([0.4, 59.6, 3599, 3600, 90_061, Number.NaN].map(formatDuration)).toEqual([
    "0 s",
    "1 min 0 s",
    "59 min 59 s",
    "1 h 0 min",
    "25 h 1 min",
    "…",
  ]);
  expect([9, 1234, 1_234_567].map(formatCount)).toEqual(["9", "1.23K", "1.23M"]);
});
