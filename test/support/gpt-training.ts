/**
 * A program that trains a small GPT and disposes of nothing. Prints its memory use: twenty lines of JSON, and one more
 * after the training, once garbage is collected.
 *
 * Arguments: `loop` (as a user would write it, with only the package's exports) or `run` (as `orchard train` does, with
 * evaluations, samples and checkpoints); a folder; the number of steps.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { crossEntropy, data, manualSeed, nn, optim } from "../../src/index.ts";
import { runSession } from "../../src/train/run.ts";
import { Session } from "../../src/train/session.ts";
import { presets } from "../../src/train/settings.ts";
import { isPoint, printMemory, printPoint } from "./memory-point.ts";

const [mode, folder, count] = process.argv.slice(2) as ["loop" | "run", string, string];
const steps = Number(count);
const text = join(folder, "text.ts");
const lines = Array.from({ length: 400 }, (_, k) => `export const value${k}: number = ${(k * 7919) % 1000};\n`);
writeFileSync(text, lines.join(""));

/** Large enough that weights, logits and gradients are outside JavaScript's memory. */
const sizes = { layers: 1, heads: 2, width: 64, dropout: 0.1 } as const;
const [context, batch, learningRate] = [8, 4, 3e-5];
let last = 0;

function show(step: number, loss: () => number): void {
  if (!isPoint(step, steps)) return;
  last = loss();
  printPoint(step, steps, last);
}

/** Never waits, except to print a loss. */
async function loop(): Promise<void> {
  manualSeed(1);
  const tokenizer = new data.ByteTokenizer();
  const { train } = await data.openTextDataset({ tokenizer, paths: [text], contextLength: context, seed: 1 });
  const model = new nn.GPT({ ...sizes, vocabularySize: tokenizer.vocabularySize, contextLength: context });
  const optimizer = new optim.AdamW(model.parameters(), { lr: learningRate });
  for (let step = 1; step <= steps; step++) {
    const { x, y } = train.next(batch);
    const loss = crossEntropy(model.forward(x), y, { dim: 2 });
    optimizer.zeroGrad();
    loss.backward();
    optim.clipGradNorm(model.parameters(), 1);
    optimizer.step();
    show(step, () => Number(loss.item()));
  }
}

async function run(): Promise<void> {
  const every = { evaluateEvery: 50, evaluationBatches: 2, saveEvery: 500, sampleEvery: 50, sampleTokens: 10 };
  const recipe = { steps, context, batch, learningRate, finalLearningRate: learningRate };
  const session = await Session.start({ ...presets.tiny, ...sizes, ...recipe, ...every, data: [text] });
  await runSession(session, join(folder, "checkpoints"), {
    on: (event) => void (event.kind === "step" && show(event.step, () => event.loss)),
  });
}

await { loop, run }[mode]();
await Bun.sleep(0);
Bun.gc(true);
printMemory(steps, last);
