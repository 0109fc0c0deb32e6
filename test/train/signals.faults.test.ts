/** Signals to a run: it ends its step, saves, restores the terminal, and names the signal. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { checkpointName } from "../../src/io/checkpoint/format.ts";
import { readLog } from "../../src/train/listeners/log.ts";
import { bunWords } from "../support/program.ts";
import { waitFor } from "../support/wait.ts";
import { type Child, lossesOf, outputOf, reaches, tiny, trainingCommands } from "./command.ts";

const { text, environment, start, orchard, train, newRun } = trainingCommands();
const words = ["--steps", "150", "--save-every", "0", "--evaluate-every", "0"];

let whole: string | undefined;
/** The losses of an uninterrupted run. */
async function undisturbed(): Promise<number[]> {
  if (!whole) {
    whole = newRun();
    await train(whole, ...words);
  }
  return lossesOf(whole);
}

/** Starts a run, and waits until it is training. */
async function started(run: string, launch: (words: string[]) => Child = start): Promise<Child> {
  const child = launch(["train", text, ...tiny, "--out", run, ...words]);
  await reaches(run, 3, child);
  return child;
}

const signals = [
  ["SIGINT", 130, "press Ctrl-C again to end at once"],
  ["SIGTERM", 143, "send SIGTERM again to end at once"],
  ["SIGHUP", 129, "send SIGHUP again to end at once"],
] as const;

describe.each(signals)("a run that receives %s", (signal, code, advice) => {
  test(`a signal saves the run and exits with ${code}; resumed, it has an uninterrupted run's losses`, async () => {
    const run = newRun();
    const child = await started(run);
    child.kill(signal);
    const { out, err, exitCode } = await outputOf(child);
    expect(exitCode).toBe(code);
    expect(err).toContain(`stopping after this step, then saving; ${advice}`);
    expect(out).toMatch(/^interrupted at step \d+: loss \d\.\d{4} nats per token$/m); // nothing was evaluated yet
    expect(`${out}${err}`).not.toContain("NaN");
    const last = readLog(run).at(-1)!;
    expect(last).toMatchObject({ kind: "end", reason: "interrupted" });
    expect(readdirSync(join(run, "checkpoints"))).toEqual([checkpointName(last.step)]);
    expect((await orchard("train", "--resume", run)).exitCode).toBe(0);
    expect(lossesOf(run)).toEqual(await undisturbed());
  });

  test("a script that gets the signal passes it on to the run, and waits for it", async () => {
    const run = newRun();
    const program = `
      const { runBuilt } = await import("./scripts/built.ts");
      await runBuilt(["src/cli/orchard.ts"], process.argv.slice(1));`;
    const child = await started(run, (command) =>
      Bun.spawn([...bunWords, "-e", program, ...command], {
        ...({ stdout: "pipe", stderr: "pipe" } as const),
        cwd: packageRoot,
        env: { ...environment, ORCHARD_BLAS: "none" }, // skips the setup of a BLAS
      }),
    );
    child.kill(signal);
    const { out, exitCode } = await outputOf(child);
    expect(exitCode).toBe(code);
    expect(out).toMatch(/^interrupted at step \d+/m);
  });
});

describe("Ctrl-C in a terminal saves the run", () => {
  /** Starts a run in a separate terminal, and waits until it is training. */
  async function inTerminal(run: string) {
    let shown = "";
    const data = (_: unknown, bytes: Uint8Array) => {
      shown += Buffer.from(bytes).toString();
    };
    const options = { cwd: packageRoot, env: environment, terminal: { cols: 80, rows: 24, data } };
    const command = ["train", text, ...tiny, "--out", run, ...words];
    const child = Bun.spawn([...bunWords, "src/cli/orchard.ts", ...command], options);
    const isUnderWay = () => {
      if (child.exitCode !== null) throw new Error(`the run ended with ${child.exitCode}:\n${shown}`);
      return readLog(run).some(({ step }) => step === 3);
    };
    await waitFor("step 3 of the run", isUnderWay, { state: () => shown });
    return { child, screen: () => shown };
  }
  /** Whether the last of these escape sequences shows the cursor. */
  const isCursorShown = (screen: string) => screen.lastIndexOf("\x1b[?25h") > screen.lastIndexOf("\x1b[?25l");

  test("Ctrl-C saves the run, and the cursor is shown again", async () => {
    const { child, screen } = await inTerminal(newRun());
    expect(isCursorShown(screen())).toBe(false);
    child.terminal!.write("\x03");
    expect(await child.exited).toBe(130);
    expect(screen()).toContain("saved: ");
    expect(isCursorShown(screen())).toBe(true);
  });

  test("a second Ctrl-C ends the run at once, and the cursor is shown again", async () => {
    let shown = "";
    const data = (_: unknown, bytes: Uint8Array) => {
      shown += Buffer.from(bytes).toString();
    };
    const program = `
      import { onInterrupt } from "./src/train/interrupt.ts";
      using interrupt = onInterrupt();
      process.stderr.write("\\x1b[?25l");
      setInterval(() => console.error("working " + interrupt.signal.aborted), 50);
      await new Promise(() => undefined);`;
    const child = Bun.spawn([...bunWords, "-e", program], { cwd: packageRoot, terminal: { data } });
    const until = (text: string, times = 1) =>
      waitFor(`the terminal to show "${text}" ${times} times`, () => shown.split(text).length > times, {
        state: () => shown,
      });
    await until("working");
    child.terminal!.write("\x03");
    await until("press Ctrl-C again to end at once");
    await until("working true", 4); // by the program's clock, signals within 100 ms count as one
    expect(child.exitCode).toBe(null);
    child.terminal!.write("\x03");
    expect(await child.exited).toBe(130);
    expect(isCursorShown(shown)).toBe(true);
  });

  test("a terminal that is closed saves the run", async () => {
    const run = newRun();
    const { child } = await inTerminal(run);
    child.terminal!.close();
    expect(await child.exited).toBe(129);
    const last = readLog(run).at(-1)!;
    expect(last).toMatchObject({ kind: "end", reason: "interrupted" });
    expect(readdirSync(join(run, "checkpoints"))).toEqual([checkpointName(last.step)]);
  });
});

test("the same signal twice at once, as a terminal and `bun run` send it, counts once", async () => {
  const child = await started(newRun());
  child.kill("SIGINT");
  child.kill("SIGINT");
  const { out, exitCode } = await outputOf(child);
  expect(exitCode).toBe(130);
  expect(out).toContain("saved: ");
});
