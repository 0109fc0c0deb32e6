// Compares convolutions of ResNet's layers on the cpu backend with PyTorch (oneDNN) on the same number of threads,
// forward and backward, in alternating order: minimum milliseconds over the rounds, and PyTorch's time divided by
// Orchard's. The aim is at least 0.9. Arguments select rows, and `--batch` the batch sizes: `bun bench/convolution.ts
// --batch 1,8,32 64x56`.

import { parseArgs } from "node:util";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { conv2d, grad, ones, randn, type Tensor, withBackend } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { PyTorch } from "./support/pytorch.ts";

/** A square kernel, padded to keep the size. */
interface Layer {
  readonly channels: number;
  readonly size: number;
  readonly outputs: number;
  readonly kernel: number;
  readonly stride: number;
  readonly groups: number;
}

const layer = (channels: number, size: number, outputs: number, kernel: number, stride = 1, groups = 1): Layer => ({
  channels,
  size,
  outputs,
  kernel,
  stride,
  groups,
});
const layers: readonly Layer[] = [
  layer(3, 224, 64, 7, 2),
  layer(64, 56, 64, 3),
  layer(64, 56, 256, 1),
  layer(128, 56, 128, 3, 2),
  layer(128, 28, 128, 3),
  layer(256, 14, 256, 3),
  layer(512, 7, 512, 3),
  layer(256, 56, 512, 1, 2),
  layer(512, 7, 2048, 1),
  layer(128, 56, 128, 3, 1, 128),
  layer(512, 14, 512, 3, 1, 512),
  layer(960, 7, 960, 3, 1, 960),
];
const titleOf = ({ channels, size, outputs, kernel, stride, groups }: Layer): string =>
  `${channels}x${size}² to ${outputs}, ${kernel}x${kernel}${stride > 1 ? `, stride ${stride}` : ""}` +
  (groups > 1 ? `, ${groups} groups` : "");

const rounds = 12;
const { values, positionals } = parseArgs({ options: { batch: { type: "string" } }, allowPositionals: true });
const wanted = positionals.join(" ");
const batches = (values.batch ?? "8").split(",").map(Number);
const { threads } = cpuInfo(cpuLibrary().native);
const other = PyTorch.start("convolution.py", threads);
console.log(`Convolutions, float32, ${threads} threads${other ? `; ${await other.hear()}` : ""}`);

/** Milliseconds of the forward pass, of x's gradient and of the weight's gradient. */
type Parts = readonly [forward: number, ofX: number, ofWeight: number];
type Run = () => Promise<Parts>;

function ours(batch: number, { channels, size, outputs, kernel, stride, groups }: Layer): Run {
  const x = randn([batch, channels, size, size], { requiresGrad: true });
  const weight = randn([outputs, channels / groups, kernel, kernel], { requiresGrad: true });
  const timed = (compute: () => Tensor): readonly [milliseconds: number, result: Tensor] => {
    const started = performance.now();
    const result = compute();
    return [performance.now() - started, result];
  };
  const options = { padding: (kernel - 1) / 2, stride, groups };
  return async () => {
    const [forward, y] = timed(() => conv2d(x, weight, options));
    const gradOutputs = [ones(y.shape)];
    const [alongX, alongWeight] = [conv2d(x, weight.detach(), options), conv2d(x.detach(), weight, options)];
    const [ofX, xGradient] = timed(() => grad([alongX], [x], { gradOutputs })[0]);
    const [ofWeight, weightGradient] = timed(() => grad([alongWeight], [weight], { gradOutputs })[0]);
    for (const tensor of [y, alongX, alongWeight, gradOutputs[0], xGradient, weightGradient]) tensor.dispose();
    return [forward, ofX, ofWeight];
  };
}

async function least(runs: readonly Run[]): Promise<number[][]> {
  const best = runs.map(() => [0, 0, 0].fill(Number.POSITIVE_INFINITY));
  for (let round = 0; round <= rounds; round++)
    for (const [at, run] of runs.entries()) {
      await Bun.sleep(20); // PyTorch's threads spin while they wait
      const taken = await run();
      if (round > 0) best[at] = best[at].map((value, part) => Math.min(value, taken[part]));
    }
  return best;
}

async function row(batch: number, spec: Layer): Promise<string[]> {
  const runs = [ours(batch, spec)];
  if (other) {
    await other.ask(JSON.stringify({ batch, ...spec }));
    runs.push(async () => JSON.parse(await other.ask("run")) as Parts);
  }
  const [mine, theirs] = await least(runs);
  const cells = mine.flatMap((value, part) => {
    const reference = theirs?.[part];
    return [value.toFixed(2), reference?.toFixed(2) ?? "", reference ? (reference / value).toFixed(2) : ""];
  });
  return [`${batch}x${titleOf(spec)}`, ...cells];
}

const rows: string[][] = [];
await withBackend("cpu", async () => {
  for (const spec of layers.filter((each) => titleOf(each).includes(wanted)))
    for (const batch of batches) rows.push(await row(batch, spec));
});
const parts = ["forward", "x's gradient", "weight's gradient"].flatMap((part) => [part, "PyTorch", "ratio"]);
console.log(table(["", ...parts], rows));
await other?.close();
