/** Fine-tunes the model in a folder on its chats, on all ranks. Each writes its losses and the adapter. */
import { join } from "node:path";
import { Team } from "../../../src/train/team.ts";
import { TuningSession } from "../../../src/train/tuning/session.ts";
import { tuningSettings } from "../../../src/train/tuning/settings.ts";

const folder = process.argv[2];
const team = await Team.gather();
const found: Record<string, { losses: number[]; adapter: number[][] }> = {};
for (const [name, flags] of Object.entries({
  plain: {},
  quantized: { quantize: "q8_0", checkpointActivations: true },
} as const)) {
  const settings = tuningSettings({
    model: join(folder, "model"),
    data: [join(folder, "chats.jsonl")],
    lora: 3,
    context: 96,
    steps: 4,
    warmup: 1,
    batch: 5,
    accumulate: 2,
    learningRate: 2e-2,
    evaluateEvery: 0,
    saveEvery: 0,
    sampleTokens: 3,
    ...flags,
  });
  const session = await TuningSession.start(settings, team);
  const losses: number[] = [];
  for (let step = 0; step < 4; step++) losses.push((await session.takeStep()).loss);
  found[name] = { losses, adapter: session.adapter.parameters().map((own) => Array.from(own.dataSync(), Number)) };
}
await Bun.write(join(folder, `rank-${team.rank}.json`), JSON.stringify(found));
await team.part();
