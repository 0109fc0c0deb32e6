// Compares creating tensors of 16 M elements on the cpu backend, filled or random, with a plain copy of the same size.

import { withBackend, withStrict } from "../src/backend/policy.ts";
import { full } from "../src/ops/creation/full.ts";
import { rand } from "../src/ops/random/rand.ts";
import { randint } from "../src/ops/random/randint.ts";
import { randn } from "../src/ops/random/randn.ts";
import { randperm } from "../src/ops/random/randperm.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { interleaved, table } from "./support/measure.ts";

const count = 1 << 24;
const small = 1 << 20;
const source = new Float32Array(count).fill(1);
const target = new Float32Array(count);

const onCpu = (make: () => Tensor) => () => withStrict(true, () => withBackend("cpu", () => make().dispose()));
const candidates: Record<string, { elements: number; run: () => void }> = {
  "copy of a Float32Array": { elements: count, run: () => target.set(source) },
  "full float32": { elements: count, run: onCpu(() => full([count], 0.5)) },
  "rand float32": { elements: count, run: onCpu(() => rand([count])) },
  "rand bfloat16": { elements: count, run: onCpu(() => rand([count], { dtype: "bfloat16" })) },
  "randn float32": { elements: count, run: onCpu(() => randn([count])) },
  "randn float64": { elements: count, run: onCpu(() => randn([count], { dtype: "float64" })) },
  "randint int64": { elements: count, run: onCpu(() => randint(0, 1000, [count])) },
  "randperm int64": { elements: small, run: onCpu(() => randperm(small)) },
};

const measured = interleaved(Object.fromEntries(Object.entries(candidates).map(([name, { run }]) => [name, run])), 5);
const rows = measured.map(({ name, median }) => {
  const { elements } = candidates[name] as { elements: number };
  return [name, `${elements / 2 ** 20} Mi`, median.toFixed(1), ((median * 1e6) / elements).toFixed(2)];
});
console.log("Creation on the cpu backend (medians of 5 rounds)");
console.log(table(["", "elements", "ms", "ns an element"], rows));
