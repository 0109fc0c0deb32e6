/** The output of `bun run demo` in a terminal of 80 columns: one bar, the curve, a sample, and the next steps. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { presets } from "../../src/train/settings.ts";
import { terminalCurve } from "../../src/train/terminal_curve.ts";
import { bunWords } from "../support/program.ts";
import { trainingCommands } from "./command.ts";

const { environment, text, newRun } = trainingCommands();

// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal is controlled by them
const controls = /\x1b\[[?\d;]*[A-Za-z]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the bar starts its row anew
const rowEnds = /\r?\n|\r|\x1b\[1G/;

test("a run of the demo's preset fits 80 columns", async () => {
  let shown = "";
  const data = (_: unknown, bytes: Uint8Array) => {
    shown += Buffer.from(bytes).toString();
  };
  const run = newRun();
  const few = ["--steps", "12", "--context", "16", "--width", "32", "--sample-tokens", "8", "--out", run];
  const child = Bun.spawn([...bunWords, "src/cli/orchard.ts", "train", text, "--preset", "demo", ...few], {
    cwd: packageRoot,
    env: environment,
    terminal: { cols: 80, rows: 24, data },
  });
  expect(await child.exited).toBe(0);
  const plain = shown.split(rowEnds).map((row) => row.replaceAll(controls, "").trimEnd());
  const bars = plain.filter((row) => row.includes("/12 │"));
  expect(bars.length).toBeGreaterThan(1);
  for (const row of bars) expect(row.length).toBeLessThan(80);
  expect(bars.at(-1)).toMatch(/12\/12 │ \d\.\d{3} bits\/byte │ held out \d\.\d{3} │ .* left$/);
  const page = plain.join("\n");
  expect(page).toMatch(/^tokens +1,024, trained on the text; \d\.\d\d bytes each$/m);
  const curve = plain.filter((row) => /^[ \d.]{6} [┤│╰]/.test(row));
  expect(curve).toHaveLength(11); // ten rows and the axis
  for (const row of curve) expect(row.length).toBeLessThan(80);
  expect(page).toMatch(/^sample:\n {2}│ export interface/m);
  expect(page).toMatch(/^computed on cpu: .*\noperations .*\nfallbacks /m);
  expect(page).not.toContain("flashAttention"); // without --verbose
  expect(page).toMatch(
    /^finished at step 12: loss \d\.\d{4} nats per token, held out \d\.\d{4}, \d\.\d{3} bits per byte$/m,
  );
  expect(page).toContain(`generate text: bun run generate ${run}`);
  expect(await Bun.file(join(run, "tokenizer.json")).exists()).toBe(true);
});

test("the demo's model has tokens of its text, and about a million parameters", () => {
  const { tokenizer, vocabulary, layers, width, context } = presets.demo;
  expect([tokenizer, vocabulary]).toEqual(["bpe", 1024]);
  const parameters = vocabulary * width + context * width + layers * (12 * width * width + 13 * width) + 2 * width;
  expect(Math.abs(parameters / 933_000 - 1)).toBeLessThan(0.01);
});

test("the curve is drawn from its first loss to its last, on axes with round numbers", () => {
  const training = Array.from({ length: 11 }, (_, step) => ({ step, loss: 5 - 0.4 * step }));
  const picture = terminalCurve({ training, heldOut: [{ step: 10, loss: 1 }] }, 29, 4);
  expect(picture.split("\n")).toEqual([
    "       │⠑⠢⠤⣀⡀",
    "     4 ┤    ⠈⠑⠒⠤⠤⣀",
    "     2 ┤          ⠉⠑⠒⠤⣀⡀",
    "       │               ⠈⠉⠒⠤⢄o",
    "       ╰─────────────────────",
    "        0             step 10",
  ]);
  expect(terminalCurve({ training: [{ step: 1, loss: Number.NaN }], heldOut: [] }, 40, 5)).toBe("");
});
