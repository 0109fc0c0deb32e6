/** A thread of JavaScript that multiplies matrices in the cpu backend and reports whether each product was correct. */
import { multiply } from "./cpu-matmul.ts";

declare const self: Worker;

/** a of ones times b[k, j] = j + w: every element of column j is k (j + w). */
function countWrong(worker: number, size: number): number {
  const operand = (storage: Float32Array) => ({
    storage,
    offset: 0,
    rowStride: size,
    columnStride: 1,
    batchStrides: [],
  });
  const a = new Float32Array(size * size).fill(1);
  const b = Float32Array.from(a, (_, index) => (index % size) + worker);
  const out = new Float32Array(size * size);
  const matrices = { a: operand(a), b: operand(b), out: operand(out), batchShape: [] };
  multiply({ dtype: "float32", m: size, n: size, k: size, ...matrices }, "worker");
  return out.reduce((wrong, value, index) => wrong + Number(value !== size * ((index % size) + worker)), 0);
}

self.onmessage = ({ data: worker }: MessageEvent<number>) => {
  let wrong = 0;
  for (let round = 0; round < 60; round++) wrong += countWrong(worker, 90 + ((round * 37) % 160));
  self.postMessage(wrong);
};
