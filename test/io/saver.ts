/**
 * A process that saves checkpoints in a loop until it is killed or fails: `bun saver.ts FOLDER FIRST_STEP ELEMENTS
 * KEEP`.
 */
import { loadCheckpoint } from "../../src/io/checkpoint/load.ts";
import { saveCheckpoint } from "../../src/io/checkpoint/save.ts";
import { fromArray } from "../../src/ops/creation/tensor.ts";

const [folder, first, elements, keep] = process.argv.slice(2);

async function saveForever(): Promise<never> {
  for (let step = Number(first); ; step++) {
    const tensors = {
      a: fromArray(new Float32Array(Number(elements)).fill(step)),
      b: fromArray(new Int32Array(1000).fill(step)),
    };
    await saveCheckpoint(folder, { model: tensors, optimizer: { tensors }, step, extra: step }, { keep: Number(keep) });
    process.stdout.write(`${step}\n`);
  }
}

await saveForever().catch(async (error: Error & { code: string }) => {
  const { step } = await loadCheckpoint(folder);
  console.log(JSON.stringify({ name: error.name, code: error.code, message: error.message, step }));
});
