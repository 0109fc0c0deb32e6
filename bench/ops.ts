// What elementwise operations cost on the cpu backend: a call on one element, and large ones against a copy of the same memory.
import { withBackend } from "../src/backend/policy.ts";
import { toDType } from "../src/ops/copy/cast.ts";
import { clone } from "../src/ops/copy/copy.ts";
import { tensor } from "../src/ops/creation/tensor.ts";
import { add, mul } from "../src/ops/elementwise/binary.ts";
import { lt } from "../src/ops/elementwise/comparison.ts";
import { where } from "../src/ops/elementwise/ternary.ts";
import { exp, neg, sin, tanh } from "../src/ops/elementwise/unary.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { interleaved, table } from "./measure.ts";

const calls = 20_000;
const size = 1 << 24;

function small(): void {
  const [a, b] = [tensor([1]), tensor([2])];
  const leaf = tensor([1], { requiresGrad: true });
  const repeat = (call: () => Tensor) => () => {
    for (let count = 0; count < calls; count++) call();
  };
  const measured = interleaved({
    "add(a, b)": repeat(() => add(a, b)),
    "add(a, 2)": repeat(() => add(a, 2)),
    "exp(a)": repeat(() => exp(a)),
    "mul(leaf, b), recorded": repeat(() => mul(leaf, b)),
  });
  console.log(`One element (microseconds a call, medians of 9 rounds of ${calls})`);
  console.log(
    table(
      ["", "µs"],
      measured.map(({ name, median }) => [name, ((median / calls) * 1000).toFixed(2)]),
    ),
  );
}

function large(): void {
  const a = tensor(Float32Array.from({ length: size }, (_, index) => (index % 1000) / 100));
  const b = clone(a);
  const half = toDType(a, "bfloat16");
  const condition = lt(a, 5);
  const [source, target] = [new Float32Array(size).fill(1), new Float32Array(size)];
  // Bytes that each has to move: operands once, the result once.
  const cases: Record<string, readonly [bytes: number, call: () => Tensor | undefined]> = {
    "plain copy": [
      8,
      () => {
        target.set(source);
        return undefined;
      },
    ],
    clone: [8, () => clone(a)],
    neg: [8, () => neg(a)],
    "add(a, b)": [12, () => add(a, b)],
    "add(a, 2)": [8, () => add(a, 2)],
    "lt(a, b)": [9, () => lt(a, b)],
    "where(c, a, b)": [13, () => where(condition, a, b)],
    exp: [8, () => exp(a)],
    tanh: [8, () => tanh(a)],
    sin: [8, () => sin(a)],
    "float32 to bfloat16": [6, () => toDType(a, "bfloat16")],
    "bfloat16 to float32": [6, () => toDType(half, "float32")],
    "float32 to int32": [8, () => toDType(a, "int32")],
  };
  const measured = interleaved(
    Object.fromEntries(Object.entries(cases).map(([name, [, call]]) => [name, () => call()?.dispose()])),
  );
  const speed = ({ name, median }: (typeof measured)[number]) => (cases[name]![0] * size) / median / 1e6;
  const copy = speed(measured[0]!);
  console.log(`\n${size} elements (medians of 9)`);
  console.log(
    table(
      ["", "ms", "GB/s", "of the copy"],
      measured.map((row) => [row.name, row.median.toFixed(2), speed(row).toFixed(1), (speed(row) / copy).toFixed(2)]),
    ),
  );
}

withBackend("cpu", () => {
  small();
  large();
});
