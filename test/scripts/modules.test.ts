/** The pack of modules that child processes of tests load instead of the sources. */
import { beforeAll, expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { packModules } from "../../scripts/suite/modules.ts";
import { packageRoot } from "../../src/core/paths.ts";

let preload: string;
beforeAll(async () => {
  preload = await packModules();
});

function run(program: string): unknown {
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "--preload", preload, "-e", program], {
    cwd: packageRoot,
  });
  expect(String(stderr)).toBe("");
  return JSON.parse(String(stdout));
}

test("a program gets one copy of each module, whichever it imports", () => {
  const program = `
    import { nn, Tensor, tensor } from "./src/index.ts";
    import { Linear } from "./src/nn/layers/linear.ts";
    import { Tensor as Same } from "./src/tensor/tensor.ts";
    import { add } from "orchard-metal";
    console.log(JSON.stringify([Same === Tensor, Linear === nn.Linear, add(tensor([1]), 2).item()]));`;
  expect(run(program)).toEqual([true, true, 3]);
});

test("packed modules have the exports of their sources, and load from the pack", async () => {
  const { default: modules } = await import(join(dirname(preload), "modules.js"));
  const paths = Object.keys(modules);
  expect(paths.length).toBeGreaterThan(1000);
  for (const path of paths.filter((_, at) => at % 20 === 0)) {
    const source = await import(join(packageRoot, path));
    expect([path, Object.keys(modules[path]).sort()]).toEqual([path, Object.keys(source).sort()]);
  }
  const program = `
    import { tensor } from "./src/index.ts";
    try { tensor([[1], [2, 3]]); } catch (error) { console.log(JSON.stringify(error.stack.includes("modules.js:"))); }`;
  expect(run(program)).toBe(true);
});
