// Measures the processor time that a dispatch to an NVIDIA GPU takes in Orchard's own code, by thread. A driver without
// a GPU replaces NVIDIA's: its calls return at once, so their time is not included. No GPU is needed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prepare, variablesOf } from "../test/backend/metal/gpu/standin.ts";

if (process.platform !== "linux") {
  console.log("The engine for NVIDIA GPUs runs on Linux only.");
  process.exit();
}
const folder = mkdtempSync(join(tmpdir(), "orchard-gpu-"));
try {
  const support = join(import.meta.dir, "support/gpu");
  await prepare(folder, join(support, "driver.cpp"));
  console.log("Processor time per dispatch (microseconds, medians of 25 rounds):");
  Bun.spawnSync([process.execPath, join(support, "program.ts")], {
    env: { ...process.env, ...variablesOf(folder) },
    stdout: "inherit",
    stderr: "inherit",
  });
} finally {
  rmSync(folder, { recursive: true });
}
