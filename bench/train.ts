// Trains nanoGPT's configuration for a CPU (4 layers, 4 heads, width 128, context 64, batches of 12, 2,000 steps, no
// dropout), compared with eager PyTorch with the same initial weights, batches and threads, alternating every few
// steps. Prints tokens per second, and the final loss of each. Once the dylib is built, `bun bench/train.ts 200` runs
// fewer steps. It uses the Python environment of `bun run fixtures`; without it, the table has only Orchard's times.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { setBackend, setStrict } from "../src/backend/policy.ts";
import type { Batch } from "../src/data/windows.ts";
import { saveSafetensors } from "../src/io/safetensors/save.ts";
import { Session } from "../src/train/session.ts";
import { presets, type Settings } from "../src/train/settings.ts";
import { evaluate, takeStep } from "../src/train/step.ts";
import { table } from "./support/measure.ts";
import { PyTorch } from "./support/pytorch.ts";

const steps = Number(process.argv[2] ?? 2000);
/** Steps of one library before the other library runs. */
const turn = 20;
/** PyTorch's threads may spin while they wait for work; they stop within this many milliseconds. */
const settling = 15;

const settings: Settings = { ...presets.cpu, steps, warmup: Math.min(presets.cpu.warmup, steps - 1) };
setBackend("cpu");
setStrict(true);
const session = await Session.start(settings);
const { model, tokenizer, tokensPerStep } = session;

/** Inputs for PyTorch, and targets, which are shifted by one. */
const rowsOf = ({ x, y }: Batch): number[][] => {
  const [inputs, next] = [x.toArray() as number[][], y.toArray() as number[][]];
  return inputs.map((row, index) => [...row, next[index].at(-1)!]);
};

async function startPyTorch(threads: number): Promise<PyTorch | undefined> {
  const other = PyTorch.start("train.py", threads);
  if (!other) return undefined;
  console.log(await other.hear());
  const { layers, heads, width, context } = settings;
  const { learningRate, finalLearningRate, warmup, beta2, weightDecay, clip } = settings;
  const folder = mkdtempSync(join(tmpdir(), "orchard-bench-"));
  const weights = join(folder, "initial.safetensors");
  await saveSafetensors(weights, model.stateDict());
  const sizes = { vocabulary: tokenizer.vocabularySize, context, layers, heads, width };
  const recipe = { learningRate, finalLearningRate, warmup, steps, beta2, weightDecay, clip };
  await other.ask(JSON.stringify({ sizes, recipe, weights }));
  rmSync(folder, { recursive: true });
  return other;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? Number.NaN;

interface Turn {
  readonly losses: readonly number[];
  readonly seconds: number;
}

async function ourTurn(batches: readonly Batch[]): Promise<Turn> {
  const losses: number[] = [];
  const started = performance.now();
  for (const batch of batches) losses.push((await takeStep(session, [batch])).loss);
  return { losses, seconds: (performance.now() - started) / 1000 };
}

const { threads } = cpuInfo(cpuLibrary().native);
console.log(
  `A GPT of ${model.parameters().reduce((sum, { size }) => sum + size, 0)} parameters, ${threads} threads, float32`,
);
const other = await startPyTorch(threads);
if (!other) console.log("PyTorch is not there: `bun run fixtures` brings it");

const turns: { ours: Turn; theirs: Turn | undefined }[] = [];
while (session.step < steps) {
  const batches = Array.from({ length: Math.min(turn, steps - session.step) }, () => session.nextBatch());
  const rows = batches.map(rowsOf);
  await Bun.sleep(settling);
  const theirs = other && (JSON.parse(await other.ask(JSON.stringify({ what: "train", batches: rows }))) as Turn);
  await Bun.sleep(settling);
  const ours = await ourTurn(batches);
  turns.push({ ours, theirs });
  for (const { x, y } of batches) for (const each of [x, y]) each.dispose();
}

const heldOut = [...session.heldOutBatches()];
const heldOutLoss = await evaluate(model, heldOut);
const answer = await other?.ask(JSON.stringify({ what: "evaluate", batches: heldOut.map(rowsOf) }));
const theirHeldOutLoss = answer === undefined ? Number.NaN : (JSON.parse(answer) as { loss: number }).loss;
await other?.close();

/** Returns the tokens per second in each turn except the first, which warms up. */
const speeds = (of: (each: (typeof turns)[number]) => Turn | undefined): number[] =>
  turns.slice(1).flatMap((each) => {
    const turn = of(each);
    return turn ? [(turn.losses.length * tokensPerStep) / turn.seconds] : [];
  });
const [mine, theirs] = [speeds(({ ours }) => ours), speeds(({ theirs }) => theirs)];
const distances = turns.flatMap(({ ours, theirs }) =>
  ours.losses.map((loss, at) => Math.abs(loss - (theirs?.losses[at] ?? Number.NaN)) / loss),
);
const shown = (value: number, digits: number) => (Number.isNaN(value) ? "" : value.toFixed(digits));
console.log(
  table(
    ["", "ours", "PyTorch", "ours / PyTorch"],
    [
      [
        "tokens a second",
        shown(median(mine), 0),
        shown(median(theirs), 0),
        shown(median(mine.map((each, at) => each / (theirs[at] ?? Number.NaN))), 2),
      ],
      [
        "loss on held-out data",
        shown(heldOutLoss, 4),
        shown(theirHeldOutLoss, 4),
        shown(heldOutLoss / theirHeldOutLoss, 4),
      ],
      ["largest distance of losses in the first 200 steps", shown(Math.max(...distances.slice(0, 200)), 7), "", ""],
    ],
  ),
);
