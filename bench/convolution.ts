// Convolutions of ResNet's layers on the cpu backend beside PyTorch (oneDNN) on as many threads, forward and backward,
// in turn in one run: milliseconds, the least of the rounds, and PyTorch's time over ours. The aim: at least 0.9. Words
// after the file's name choose rows: `bun bench/convolution.ts 64x56`.

import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { conv2d, grad, ones, randn, withBackend } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { PyTorch } from "./support/pytorch.ts";

/** A batch of eight; a square kernel padded to keep the size. */
interface Case {
  readonly channels: number;
  readonly size: number;
  readonly outputs: number;
  readonly kernel: number;
  readonly stride: number;
  readonly groups: number;
}

const layer = (channels: number, size: number, outputs: number, kernel: number, stride = 1, groups = 1): Case => ({
  ...{ channels, size, outputs, kernel, stride, groups },
});
const cases: readonly Case[] = [
  layer(3, 224, 64, 7, 2),
  layer(64, 56, 64, 3),
  layer(64, 56, 256, 1),
  layer(128, 56, 128, 3, 2),
  layer(128, 28, 128, 3),
  layer(256, 14, 256, 3),
  layer(512, 7, 512, 3),
  layer(128, 56, 128, 3, 1, 128),
];
const titleOf = ({ channels, size, outputs, kernel, stride, groups }: Case): string =>
  `${channels}x${size}² to ${outputs}, ${kernel}x${kernel}${stride > 1 ? `, stride ${stride}` : ""}` +
  (groups > 1 ? `, ${groups} groups` : "");

const rounds = 12;
const wanted = process.argv.slice(2).join(" ");
const { threads } = cpuInfo(cpuLibrary().native);
const other = PyTorch.start("convolution.py", threads);
console.log(`Convolutions, float32, batches of 8, ${threads} threads${other ? `; ${await other.hear()}` : ""}`);

/** Milliseconds of a forward and of a backward. */
type Run = () => Promise<readonly [forward: number, backward: number]>;

function ours({ channels, size, outputs, kernel, stride, groups }: Case): Run {
  const x = randn([8, channels, size, size], { requiresGrad: true });
  const weight = randn([outputs, channels / groups, kernel, kernel], { requiresGrad: true });
  return async () => {
    const started = performance.now();
    const y = conv2d(x, weight, { padding: (kernel - 1) / 2, stride, groups });
    const forward = performance.now() - started;
    const gradOutputs = [ones(y.shape)];
    const turned = performance.now();
    for (const gradient of grad([y], [x, weight], { gradOutputs })) gradient.dispose();
    const backward = performance.now() - turned;
    y.dispose();
    gradOutputs[0]!.dispose();
    return [forward, backward];
  };
}

async function least(runs: readonly Run[]): Promise<number[][]> {
  const best = runs.map(() => [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]);
  for (let round = 0; round <= rounds; round++)
    for (const [at, run] of runs.entries()) {
      await Bun.sleep(20); // the other side's threads wait in a loop
      const taken = await run();
      if (round > 0) best[at] = best[at]!.map((value, part) => Math.min(value, taken[part]!));
    }
  return best;
}

const rows: string[][] = [];
await withBackend("cpu", async () => {
  for (const each of cases.filter((own) => titleOf(own).includes(wanted))) {
    const runs = [ours(each)];
    if (other) {
      await other.ask(JSON.stringify(each));
      runs.push(async () => JSON.parse(await other.ask("run")) as [number, number]);
    }
    const [own, theirs] = await least(runs);
    const cells = own!.flatMap((value, part) => {
      const reference = theirs?.[part];
      return [value.toFixed(2), reference?.toFixed(2) ?? "", reference ? (reference / value).toFixed(2) : ""];
    });
    rows.push([titleOf(each), ...cells]);
  }
});
console.log(table(["", "forward", "PyTorch", "ratio", "backward", "PyTorch", "ratio"], rows));
await other?.close();
