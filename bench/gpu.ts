// `bun run bench gpu` measures the processor time that a dispatch to an NVIDIA GPU takes in Orchard's own code, by
// thread. A driver without a GPU replaces NVIDIA's: its calls return at once, so their time is not included. No GPU is
// needed.
//
// On a machine with an NVIDIA GPU, each in a separate call:
//
//     bun bench/gpu.ts device [dispatches] [elementwise] [training] [products] [attention]   # beside PyTorch
//     bun bench/gpu.ts decode          # a Llama of 1 G weights in q4_0, as a share of a copy's bandwidth
//     bun bench/gpu.ts calls [I/N] [sizes…]   # every operation once, for compute-sanitizer; I/N: a share of the calls
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prepare, variablesOf } from "../test/backend/metal/gpu/standin.ts";

if (process.platform !== "linux") {
  console.log("The engine for NVIDIA GPUs runs on Linux only.");
  process.exit();
}
const support = join(import.meta.dir, "support/gpu");
const [program, ...words] = process.argv.slice(2);

/** Runs a program of bench/support/gpu, and returns its status. */
function run(name: string, values: readonly string[], variables: Readonly<Record<string, string>>): number {
  const { exitCode } = Bun.spawnSync([process.execPath, join(support, `${name}.ts`), ...values], {
    env: { ...process.env, ...variables },
    stdout: "inherit",
    stderr: "inherit",
  });
  return exitCode;
}

if (program !== undefined) {
  process.exit(run(program, words, { ORCHARD_METAL_DEVICE: "nvidia", ORCHARD_BACKEND: "metal", ...process.env }));
}
const folder = mkdtempSync(join(tmpdir(), "orchard-gpu-"));
try {
  await prepare(folder, join(support, "driver.cpp"));
  console.log("Processor time per dispatch (microseconds, medians of 25 rounds):");
  run("program", [], variablesOf(folder));
} finally {
  rmSync(folder, { recursive: true });
}
