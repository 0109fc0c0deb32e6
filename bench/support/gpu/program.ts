/** Encodes small dispatches on the selected device. Prints the processor time per dispatch, by thread. */
import { readdirSync, readFileSync } from "node:fs";
import { compile, DeviceBuffer, full, metalContext, metalKernel, noGrad, setBackend } from "../../../src/index.ts";
import { table } from "../measure.ts";

const threads = ["this thread", "Metal's threads"] as const;

/** Returns nanoseconds of processor time. Metal's threads have the process's name, the engine's do not. */
function times(): number[] {
  const name = (task: string) => readFileSync(`/proc/self/task/${task}/comm`, "utf8");
  const spent = (task: string) => Number(readFileSync(`/proc/self/task/${task}/schedstat`, "utf8").split(" ")[0]);
  const main = `${process.pid}`;
  const others = readdirSync("/proc/self/task").filter((task) => task !== main && name(task) === name(main));
  return [spent(main), others.reduce((sum, task) => sum + spent(task), 0)];
}

const touch = metalKernel({
  name: "touch",
  source: `#include <metal_stdlib>
kernel void touch(device float* x [[buffer(0)]], constant uint& n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (i >= n) x[i] = 0;
}`,
});
using buffer = new DeviceBuffer(4096, { zero: true });
setBackend("metal");
const [a, b] = [full([64], 1), full([64], 2)];
const chain = compile((x: typeof a) => {
  let y = x;
  for (let step = 0; step < 100; step++) y = y.cumsum(0);
  return y;
});

const repeat = (count: number, run: () => void) => () => {
  for (let i = 0; i < count; i++) run();
};
const candidates = {
  "a custom kernel": repeat(1000, () => touch.encode({ x: buffer, n: 64 }, { grid: 32, threadgroup: 32 })),
  "an operation on tensors": repeat(1000, () => a.add(b).dispose()),
  "a dispatch of a compiled function": repeat(10, () => noGrad(() => chain(a).dispose())),
};

const rounds = 25;
const rows = Object.entries(candidates).map(([name, run]) => {
  const samples: number[][] = [];
  for (let round = -10; round < rounds; round++) {
    const { dispatches } = metalContext().statistics();
    const before = times();
    run();
    metalContext().wait();
    const count = metalContext().statistics().dispatches - dispatches;
    if (round >= 0) samples.push(times().map((time, at) => (time - before[at]) / count / 1000));
  }
  const medians = threads.map((_, at) => samples.map((sample) => sample[at]).sort((x, y) => x - y)[rounds >> 1]);
  return [name, ...medians.map((median) => median.toFixed(2))];
});
console.log(table(["", ...threads], rows));
