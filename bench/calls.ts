// Measures the overhead of calls outside the cpu dylib: for an addition of one element, and for a training step of a
// small GPT (nanoGPT's configuration for a CPU: 4 layers, 4 heads, width 128, context 64, batch 12). Each function of
// the dylib is timed; the cost of timing counts as overhead.
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { add, crossEntropy, manualSeed, nn, optim, randint, setBackend, setStrict, tensor } from "../src/index.ts";
import { table } from "./support/measure.ts";

setBackend("cpu");
setStrict(true);

/** Nanoseconds in the dylib and calls so far. The library compiles functions at their first call. */
let [inside, calls] = [0, 0];
const native = cpuLibrary().native as unknown as Record<string, (...values: readonly unknown[]) => unknown>;
function timeDylib(): void {
  for (const name of Object.keys(native).filter((each) => each.startsWith("orchard_cpu_run"))) {
    const original = native[name];
    native[name] = (...values) => {
      const started = Bun.nanoseconds();
      const result = original(...values);
      inside += Bun.nanoseconds() - started;
      calls++;
      return result;
    };
  }
}

const medianOf = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number;

/**
 * Returns nanoseconds per call: the median of rounds of 1,000 calls, and the fastest, which other programs disturb
 * least.
 */
function nanoseconds(call: () => unknown, rounds = 400): { median: number; fastest: number } {
  const times = Array.from({ length: rounds }, () => {
    const started = Bun.nanoseconds();
    for (let count = 0; count < 1000; count++) call();
    return (Bun.nanoseconds() - started) / 1000;
  });
  return { median: medianOf(times), fastest: Math.min(...times) };
}

const x = tensor([1]);
const y = tensor([2]);
const one = [
  ["add of one element", nanoseconds(() => add(x, y))],
  ["the same, and dispose", nanoseconds(() => add(x, y).dispose())],
] as const;
console.log("Nanoseconds of a call, of 400 rounds of 1,000\n");
console.log(
  table(
    ["call", "median", "fastest"],
    one.map(([name, { median, fastest }]) => [name, median.toFixed(0), fastest.toFixed(0)]),
  ),
);

timeDylib();
manualSeed(0);
const model = new nn.GPT({ vocabularySize: 256, contextLength: 64, layers: 4, heads: 4, width: 128 });
const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-3 });

/**
 * Returns the milliseconds per step, the milliseconds in the dylib, and the dylib's calls, for a batch of this shape.
 */
function stepsOf(shape: readonly [number, number], count: number) {
  const [inputs, targets] = [randint(0, 256, shape), randint(0, 256, shape)];
  const step = () => {
    const before = { inside, calls, now: Bun.nanoseconds() };
    const loss = crossEntropy(model.forward(inputs), targets, { dim: 2 });
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    const time = (Bun.nanoseconds() - before.now) / 1e6;
    return { time, outside: time - (inside - before.inside) / 1e6, calls: calls - before.calls };
  };
  return Array.from({ length: count }, step).slice(count / 2);
}

// The second case makes the same calls with almost no computation, so its fastest step shows the time of TypeScript
// even on a busy machine.
const rows = [stepsOf([12, 64], 100), stepsOf([1, 8], 1000)].map((steps, at) => [
  at === 0 ? "12x64" : "1x8",
  medianOf(steps.map(({ time }) => time)).toFixed(2),
  medianOf(steps.map(({ outside }) => outside)).toFixed(2),
  `${(100 * medianOf(steps.map(({ time, outside }) => outside / time))).toFixed(1)} %`,
  Math.min(...steps.map(({ time }) => time)).toFixed(2),
  Math.min(...steps.map(({ outside }) => outside)).toFixed(2),
  medianOf(steps.map((each) => each.calls)),
]);
console.log("\nA step of the small GPT, milliseconds, medians and fastest\n");
console.log(table(["batch", "step", "TypeScript", "share", "fastest step", "fastest TypeScript", "calls"], rows));
