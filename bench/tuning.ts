// Measures the peak tensor memory of a LoRA step: `bun bench/tuning.ts [--context 512] [--rows 1]`. A Llama of 180
// million random parameters in float32 (12 blocks of width 1024, a vocabulary of 16,384) with adapted queries and
// values, in a separate process per row: tensor memory before the second step, and its peak in that step. Weights that
// are mapped from a file would not count; these are in memory.

import { parseArgs } from "node:util";
import { Generator, memory, nn, optim, resetPeakMemory, setBackend, tensor } from "../src/index.ts";
import { Decoder } from "../src/nn/models/decoder/decoder.ts";
import type { DecoderDescription, LayerDescription } from "../src/nn/models/decoder/description.ts";
import { lossOf } from "../src/train/gradients.ts";
import { table } from "./support/measure.ts";

const { values: flags } = parseArgs({
  options: {
    context: { type: "string", default: "512" },
    rows: { type: "string", default: "1" },
    /** Whether this is the child process of one row of the table: rank, format, and whether blocks are recomputed. */
    one: { type: "string" },
  },
});
const [context, rows] = [Number(flags.context), Number(flags.rows)];

interface Case {
  readonly rank: number;
  readonly quantize: "" | "q4_0";
  readonly checkpoint: boolean;
}

const layer: LayerDescription = {
  norms: "before",
  attention: {
    heads: 16,
    keyValueHeads: 4,
    headWidth: 64,
    scale: 1 / 8,
    fused: false,
    queryKeyValueBias: false,
    outputBias: false,
    rope: { base: 10_000 },
  },
  feedForward: { hidden: 2816, activation: "silu", gated: true, fused: false, bias: false },
};
const description: DecoderDescription = {
  architecture: "llama",
  vocabularySize: 16_384,
  contextLength: 2048,
  width: 1024,
  norm: { kind: "rmsNorm", eps: 1e-5 },
  learnedPositions: false,
  tied: true,
  layers: Array.from({ length: 12 }, () => layer),
};

function measure({ rank, quantize, checkpoint }: Case): { readonly before: number; readonly peak: number } {
  setBackend("cpu");
  const model = new Decoder(description, { generator: new Generator(1) });
  if (quantize) nn.quantizeModel(model, { format: quantize });
  const adapter = nn.lora(model, { rank });
  const optimizer = new optim.AdamW(adapter.parameters(), { lr: 1e-4 });
  const tokens = Array.from({ length: rows * context }, (_, at) => (at * 7919) % 16_384);
  const learned = tokens.map((_, at) => at).filter((at) => at % 4 === 3); // a quarter of the tokens
  const int32 = (values: readonly number[], shape: number[]) => tensor(Int32Array.from(values), { shape }) as never;
  const batch = {
    x: int32(tokens, [rows, context]),
    y: int32(learned, [learned.length]),
    from: int32(learned, [learned.length]),
    targets: learned.length,
    segments: undefined,
    checkpoint,
  };
  const step = () => {
    lossOf(model, batch).backward();
    optimizer.step();
    optimizer.zeroGrad();
  };
  step();
  Bun.gc(true);
  resetPeakMemory();
  const before = memory().host.liveBytes;
  step();
  return { before, peak: memory().host.peakBytes };
}

if (flags.one === undefined) {
  const found: string[][] = [];
  for (const quantize of ["", "q4_0"] as const)
    for (const checkpoint of [false, true])
      for (const rank of [1, 8, 64]) {
        const one = JSON.stringify({ rank, quantize, checkpoint } satisfies Case);
        const words = ["--one", one, "--context", flags.context, "--rows", flags.rows];
        const child = Bun.spawn([process.execPath, import.meta.path, ...words], { stdout: "pipe" });
        const { before, peak } = JSON.parse(await new Response(child.stdout).text());
        const megabytes = [before, peak, peak - before].map((bytes: number) => (bytes / 1e6).toFixed(0));
        found.push([quantize || "float32", checkpoint ? "yes" : "no", `${rank}`, ...megabytes]);
      }
  console.log(`${rows} x ${context} tokens, MB of tensors`);
  console.log(table(["weights", "blocks again", "rank", "before a step", "at the peak", "of the step"], found));
} else console.log(JSON.stringify(measure(JSON.parse(flags.one))));
