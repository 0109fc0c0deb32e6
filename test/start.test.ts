/** The dylibs that importing the package loads: none, until an operation needs one. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";

const from = JSON.stringify(join(packageRoot, "src", "index.ts"));

/** The dylibs of this package in a process's map after it ran a program. */
function loadedBy(program: string): string[] {
  const tell = 'console.log(await Bun.file("/proc/self/maps").text());';
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, "-e", `${program}\n${tell}`], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  expect([stderr.toString(), exitCode]).toEqual(["", 0]);
  return [...new Set([...stdout.toString().matchAll(/libOrchard(\w+)\.so/g)].map(([, name]) => name))].sort();
}

// On macOS a process can't read its memory map.
test.if(process.platform === "linux")(
  "importing loads no dylib, and an operation loads only that of its backend",
  () => {
    expect(loadedBy(`import ${from};`)).toEqual([]);
    expect(loadedBy(`import { add, tensor } from ${from}; add(tensor([1, 2]), 1);`)).toEqual(["CPU"]);
    expect(
      loadedBy(`import { add, tensor, withBackend } from ${from};
    withBackend("reference", () => add(tensor([1, 2]), 1));`),
    ).toEqual([]);
  },
);
