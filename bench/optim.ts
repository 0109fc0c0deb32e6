// Compares an optimizer step on the cpu backend with a plain copy: bytes read and written, in gigabytes per second.

import { withBackend, withStrict } from "../src/backend/policy.ts";
import { optim, zeros } from "../src/index.ts";
import { bytesOf, type FloatDType } from "../src/tensor/dtype.ts";
import { interleaved, table } from "./support/measure.ts";

/** Parameters of a GPT of 8 layers of width 512: 50 tensors with 25 M elements. */
const sizes = [
  ...Array.from({ length: 8 }, () => [512, 512 * 1536, 512 * 512, 512, 512 * 2048, 2048 * 512]).flat(),
  512,
  512,
];
const elements = sizes.reduce((sum, size) => sum + size, 0);

const { AdamW, SGD, Lion } = optim;
type Make = (parameters: ReturnType<typeof zeros>[]) => { step(): void };

function stepOf(make: Make, dtype: FloatDType): () => void {
  const run = <Result>(body: () => Result) => withStrict(true, () => withBackend("cpu", body));
  return run(() => {
    const parameters = sizes.map((size) => zeros([size], { dtype, requiresGrad: true }));
    for (const parameter of parameters) parameter.grad = zeros(parameter.shape, { dtype });
    const optimizer = make(parameters);
    return () => run(() => optimizer.step());
  });
}

/**
 * Returns the bytes read and written per element: the gradient once, the parameter and `planes` numbers of state twice.
 */
const bytesFor = (dtype: FloatDType, planes: number): number => elements * (3 * bytesOf(dtype) + 8 * planes);

const source = new Float32Array(elements).fill(1);
const target = new Float32Array(elements);
const candidates: Record<string, { bytes: number; run: () => void }> = {
  "copy of a Float32Array": { bytes: elements * 8, run: () => target.set(source) },
  "AdamW float32": { bytes: bytesFor("float32", 2), run: stepOf((p) => new AdamW(p), "float32") },
  "AdamW bfloat16": { bytes: bytesFor("bfloat16", 2), run: stepOf((p) => new AdamW(p), "bfloat16") },
  "AdamW bfloat16, master weights": {
    bytes: bytesFor("bfloat16", 3) - elements * 2,
    run: stepOf((p) => new AdamW(p, { masterWeights: true }), "bfloat16"),
  },
  "SGD float32, momentum": {
    bytes: bytesFor("float32", 1),
    run: stepOf((p) => new SGD(p, { momentum: 0.9 }), "float32"),
  },
  "Lion float32": { bytes: bytesFor("float32", 1), run: stepOf((p) => new Lion(p), "float32") },
};

const measured = interleaved(Object.fromEntries(Object.entries(candidates).map(([name, { run }]) => [name, run])), 5);
const rows = measured.map(({ name, median }) => {
  const { bytes } = candidates[name] as { bytes: number };
  return [name, median.toFixed(1), (bytes / 1e6 / median).toFixed(1)];
});
console.log(
  `A step over ${sizes.length} parameters, ${(elements / 1e6).toFixed(1)} M elements, on the cpu backend (median of 5)`,
);
console.log(table(["", "ms", "GB/s"], rows));
