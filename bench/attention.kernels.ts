// Counts the memory traffic and the products of attention's Metal kernels on the software device. Bytes of device
// memory are relative to the minimum for the kernels' tiles (the aim is at most 1.15). Floating-point operations of
// matrix products are relative to the formula: 4 N² D forward and 14 N² D backward (6 in the kernel over queries, 8 in
// the kernel over keys), or half of these if causal. One head is measured; counts grow in proportion to the number of
// heads.
import { isMetalOpen, metalContext } from "../src/backend/metal/context.ts";
import { formulaOperations, measureTraffic, type Size } from "./support/attention_traffic.ts";
import { table } from "./support/measure.ts";

const sizes: readonly Size[] = [
  { dtype: "float32", length: 512, dim: 64, causal: false },
  { dtype: "float32", length: 512, dim: 64, causal: true },
  { dtype: "float32", length: 512, dim: 128, causal: true },
  { dtype: "float16", length: 512, dim: 64, causal: false },
  { dtype: "float16", length: 512, dim: 64, causal: true },
  { dtype: "float16", length: 512, dim: 128, causal: false },
  { dtype: "bfloat16", length: 500, dim: 80, causal: true },
  { dtype: "float16", length: 256, dim: 256, causal: false },
  { dtype: "float32", length: 512, dim: 64, causal: true, family: "apple9" },
  { dtype: "float16", length: 512, dim: 64, causal: true, family: "apple9" },
];

if (!metalContext().isSoftware) {
  console.log("Apple's device has no counters: run this with the software device.");
} else {
  const rows = sizes.flatMap((size) =>
    measureTraffic(size).map(({ kernel, tile, bytes, leastBytes, operations }) => [
      [`${size.dtype} N ${size.length} D ${size.dim}`, size.causal && "causal", size.family, kernel]
        .filter(Boolean)
        .join(" "),
      `${tile.down * 8}x${tile.columns}`,
      (bytes / 1024).toFixed(0),
      (bytes / leastBytes).toFixed(3),
      (operations / 1e6).toFixed(1),
      (operations / formulaOperations(kernel, size)).toFixed(3),
    ]),
  );
  console.log(table(["", "tile", "KiB", "of least", "Mflop", "of formula"], rows));
}
if (isMetalOpen()) metalContext().close();
