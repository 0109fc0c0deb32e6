import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { MetalContext, metalKernel } from "../../../src/index.ts";
import { testFolder } from "../../support/folder.ts";

const { path: folder } = testFolder("constants");

/** So many kernels that the software device compiles them in several parts, each of which is one file of its cache. */
const kernels = Array.from(
  { length: 40 },
  (_, n) =>
    `kernel void k${n}(device float* y, uint i [[thread_position_in_grid]]) { y[i] = negate ? -width : width + ${n}; }`,
);
const source = `#include <metal_stdlib>
// ${folder}
constant bool negate [[function_constant(0)]];
constant float width [[function_constant(600 + 1)]];
${kernels.join("\n")}`;

const compiledParts = () => readdirSync(folder).filter((name) => name.endsWith(".so")).length;

test("setting constants by name compiles only the kernel in use of a large library", () => {
  using context = new MetalContext();
  if (!context.isSoftware) return expect(process.platform).toBe("darwin"); // Apple's compiler keeps no such files
  const before = context.report().settings?.["cache"];
  context.configure("cache", folder);
  try {
    for (const [name, negate, expected] of [
      ["k7", true, -2.5],
      ["k7", false, 9.5],
      ["k6", false, 8.5], // k6 is in the part of the library that is already compiled
    ] as const) {
      using kernel = metalKernel({ name, source, constants: { negate, width: 2.5 }, context });
      expect(kernel.run({ y: new Float32Array(1) }, { grid: 1 }).outputs.y).toEqual(new Float32Array([expected]));
    }
    expect(compiledParts()).toBe(1);
    const misnamed = () => metalKernel({ name: "k30", source, constants: { widht: 2.5 }, context });
    expect(misnamed).toThrow("k30 has no function constant widht; it has: negate, width");
    expect(compiledParts()).toBe(1);
  } finally {
    context.configure("cache", String(before));
  }
});
