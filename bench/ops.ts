// Measures elementwise operations on the cpu backend: a call on one element compared with an empty native call, and
// large tensors compared with a copy of the same size. The aims: at most 1 µs to add one element, and at least 0.7 of
// the copy's bandwidth.
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { withBackend } from "../src/backend/policy.ts";
import { dropout } from "../src/ops/activation/dropout.ts";
import { gelu, geluGradient, geluTanhGradient } from "../src/ops/activation/gelu.ts";
import { sigmoid } from "../src/ops/activation/sigmoid.ts";
import { silu } from "../src/ops/activation/silu.ts";
import { softplus } from "../src/ops/activation/softplus.ts";
import { swiglu } from "../src/ops/activation/swiglu.ts";
import { swigluGradient } from "../src/ops/activation/swiglu_gradient.ts";
import { toDType } from "../src/ops/copy/cast.ts";
import { clone } from "../src/ops/copy/copy.ts";
import { tensor } from "../src/ops/creation/tensor.ts";
import { add, mul, neg } from "../src/ops/elementwise/arithmetic.ts";
import { clamp } from "../src/ops/elementwise/clamp.ts";
import { lt } from "../src/ops/elementwise/comparison.ts";
import { floorDivide, fmod, remainder } from "../src/ops/elementwise/division.ts";
import { erf } from "../src/ops/elementwise/erf.ts";
import { exp } from "../src/ops/elementwise/exponential.ts";
import { maximum } from "../src/ops/elementwise/extrema.ts";
import { tanh } from "../src/ops/elementwise/hyperbolic.ts";
import { lerp } from "../src/ops/elementwise/lerp.ts";
import { log } from "../src/ops/elementwise/logarithm.ts";
import { pow, sqrt } from "../src/ops/elementwise/power.ts";
import { atan2, sin } from "../src/ops/elementwise/trigonometric.ts";
import { where } from "../src/ops/elementwise/where.ts";
import { rope } from "../src/ops/position/rope.ts";
import { transpose } from "../src/ops/view/permute.ts";
import { reshape } from "../src/ops/view/reshape.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { interleaved, type Measured, table } from "./support/measure.ts";

const calls = 20_000;
const size = 1 << 24;
const rounds = 9;

function small(): void {
  const [a, b] = [tensor([1]), tensor([2])];
  const leaf = tensor([1], { requiresGrad: true });
  const { native } = cpuLibrary();
  const repeat = (call: () => unknown) => () => {
    for (let count = 0; count < calls; count++) call();
  };
  const measured = interleaved(
    {
      "an empty native call": repeat(() => native.orchard_cpu_abi_version()),
      "new Float32Array(1)": repeat(() => new Float32Array(1)),
      "add(a, b)": repeat(() => add(a, b)),
      "add(a, 2)": repeat(() => add(a, 2)),
      "exp(a)": repeat(() => exp(a)),
      "mul(leaf, b), recorded": repeat(() => mul(leaf, b)),
    },
    rounds,
  );
  const microseconds = (time: number) => ((time / calls) * 1000).toFixed(3);
  const rows = measured.map(({ name, median, fastest }) => [name, microseconds(median), microseconds(fastest)]);
  console.log(`One element: microseconds a call, over ${rounds} rounds of ${calls}`);
  console.log(table(["", "median", "fastest"], rows));
}

/** A measured operation, with the bytes per element that it must move: operands once, the result once. */
type Case = readonly [bytes: number, call: () => Tensor | undefined];

/** Returns the last of several results, and disposes the others. */
function lastOf(results: readonly Tensor[]): Tensor {
  for (const result of results.slice(0, -1)) result.dispose();
  return results.at(-1)!;
}

/** Returns operations on large tensors. The first is a plain copy, with which the others are compared. */
function largeCases(): Readonly<Record<string, Case>> {
  const a = tensor(Float32Array.from({ length: size }, (_, index) => (index % 1000) / 100));
  const b = clone(a);
  const half = toDType(a, "bfloat16");
  const condition = lt(a, 5);
  const [heads, halfHeads] = [reshape(a, [8, 16, -1, 128]), reshape(half, [8, 16, -1, 128])];
  const transposed = transpose(reshape(a, [8, -1, 16, 128]), 1, 2);
  const [source, target] = [new Float32Array(size).fill(1), new Float32Array(size)];
  return {
    "plain copy": [8, () => void target.set(source)],
    clone: [8, () => clone(a)],
    neg: [8, () => neg(a)],
    sqrt: [8, () => sqrt(a)],
    exp: [8, () => exp(a)],
    log: [8, () => log(a)],
    tanh: [8, () => tanh(a)],
    sigmoid: [8, () => sigmoid(a)],
    erf: [8, () => erf(a)],
    sin: [8, () => sin(a)],
    softplus: [8, () => softplus(a)],
    gelu: [8, () => gelu(a)],
    "gelu by tanh": [8, () => gelu(a, { approximate: "tanh" })],
    "gradient of gelu": [12, () => geluGradient(b, a)],
    "gradient of gelu by tanh": [12, () => geluTanhGradient(b, a)],
    silu: [8, () => silu(a)],
    "swiglu(a, b)": [12, () => swiglu(a, b)],
    "gradients of swiglu": [20, () => lastOf(swigluGradient(a, a, b))],
    dropout: [8, () => dropout(a)],
    rope: [8, () => rope(heads)],
    "rope, transposed": [8, () => rope(transposed)],
    "rope, bfloat16": [4, () => rope(halfHeads)],
    "add(a, b)": [12, () => add(a, b)],
    "add(a, 2)": [8, () => add(a, 2)],
    "mul(a, b)": [12, () => mul(a, b)],
    "maximum(a, b)": [12, () => maximum(a, b)],
    "floorDivide(a, 3)": [8, () => floorDivide(a, 3)],
    "fmod(a, 3)": [8, () => fmod(a, 3)],
    "remainder(a, 3)": [8, () => remainder(a, 3)],
    "pow(a, 1.5)": [8, () => pow(a, 1.5)],
    "atan2(a, b)": [12, () => atan2(a, b)],
    "lt(a, b)": [9, () => lt(a, b)],
    "where(c, a, b)": [13, () => where(condition, a, b)],
    "clamp(a, 1 to 2)": [8, () => clamp(a, { min: 1, max: 2 })],
    "lerp(a, b, 0.3)": [12, () => lerp(a, b, 0.3)],
    "float32 to bfloat16": [6, () => toDType(a, "bfloat16")],
    "bfloat16 to float32": [6, () => toDType(half, "float32")],
    "float32 to float16": [6, () => toDType(a, "float16")],
    "float32 to int32": [8, () => toDType(a, "int32")],
    "float32 to bool": [5, () => toDType(a, "bool")],
  };
}

function large(): void {
  const cases = largeCases();
  const measured = interleaved(
    Object.fromEntries(Object.entries(cases).map(([name, [, call]]) => [name, () => call()?.dispose()])),
    rounds,
  );
  const speed = ({ name, median }: Measured) => (cases[name][0] * size) / median / 1e6;
  const copy = speed(measured[0]);
  const rows = measured.map((row) => [
    row.name,
    row.median.toFixed(2),
    speed(row).toFixed(1),
    (speed(row) / copy).toFixed(2),
  ]);
  console.log(`\n${size} elements (medians of ${rounds}, in turn); aim 0.70 of the copy`);
  console.log(table(["", "ms", "GB/s", "of the copy"], rows));
}

withBackend("cpu", () => {
  small();
  large();
});
