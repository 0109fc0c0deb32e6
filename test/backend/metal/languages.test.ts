/** The versions of Metal's language that a kernel is checked with; the check of each applies that version's rules. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { check, languages, languagesFor } from "../../../scripts/suite/kernels.ts";
import { includedTexts } from "../../../src/cli/kernels.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { metalContext } from "../../../src/index.ts";
import { testFolder } from "../../support/folder.ts";

const folder = testFolder("languages");
const software = metalContext().isSoftware;

test("a changed kernel or header is checked in all versions that it supports, other kernels in the first one", () => {
  const kernels = [...new Bun.Glob("kernels/**/*.metal").scanSync({ cwd: packageRoot, absolute: true })];
  const shared = join(packageRoot, "kernels/common/bits.h");
  const users = kernels.filter((kernel) => includedTexts(kernel).files.includes(shared));
  expect(users.length).toBeWithin(1, kernels.length);
  for (const kernel of kernels) {
    // Tensors came with Metal 4.0.
    const known = kernel.endsWith("matmul/tensor.metal") ? languages.slice(2) : languages;
    expect(languagesFor(kernel, [])).toEqual([known[0]]);
    expect(languagesFor(kernel, [shared])).toEqual(users.includes(kernel) ? known : [known[0]]);
    expect(languagesFor(kernel, [kernel])).toEqual(known);
    expect(languagesFor(kernel, undefined)).toEqual(known);
  }
});

/** Programs that exactly one of the versions rejects. */
const refusedBy = (version: number) => `kernel void k(device float* x) {
  x[0] = __METAL_VERSION__;
#if __METAL_VERSION__ == ${version}
  threadgroup float* y = x;
#endif
}`;

test.if(software)("a kernel that one version rejects fails only in that version", () => {
  for (const [index, language] of languages.entries()) {
    const path = folder.file(`only_${index}.metal`);
    writeFileSync(path, refusedBy(Math.round(100 * Number(language.slice("metal".length)))));
    for (const other of languages)
      expect([other, check(path, other).failed]).toEqual([other, Number(other === language)]);
  }
});

test.if(software)("an object in device memory has methods from Metal 4.1 on", () => {
  const path = folder.file("object.metal");
  writeFileSync(
    path,
    "struct Box { float v; float get() const { return v; } };\nkernel void k(device Box* x) { x[0].v = x[1].get(); }",
  );
  expect(languages.filter((language) => check(path, language).failed === 0)).toEqual(["metal4.1"]);
});
