// Compares the peak memory of ONNX models in Orchard and onnxruntime on Linux, each in a new process:
// `bun bench/onnx_memory.ts [words…] [--python PROGRAM]`. Memory in use before a model is loaded does not count.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { onnxAlone, presentPython } from "../scripts/fixtures/environment.ts";
import { io, rand, setBackend, Tensor } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { inputsOf, modelPath, packageModels } from "./support/onnx_models.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { python: { type: "string" }, child: { type: "string" }, inputs: { type: "string" } },
});
const THREADS = "2";

function peak(): number {
  const line = /^VmHWM:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"));
  return Number(line![1]) * 1024;
}

/** Runs one model in this process. Prints the peak memory before and after, in bytes. */
async function child(path: string, inputs: string): Promise<void> {
  setBackend("cpu");
  const given = await io.loadNpz(inputs);
  rand([64, 64]).matmul(rand([64, 64])); // loads the BLAS library
  const before = peak();
  const model = await io.loadOnnx(path);
  for (let at = 0; at < 5; at++) {
    const results = await model.run(given);
    for (const value of Object.values(results)) if (value instanceof Tensor) value.dispose();
  }
  console.log(before, peak());
}

function measured(words: readonly string[]): number {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...words], {
    env: { ...process.env, ORCHARD_CPU_THREADS: THREADS },
  });
  if (exitCode !== 0) throw new Error(stderr.toString());
  const [before = 0, after = 0] = stdout.toString().trim().split(" ").map(Number);
  return (after - before) / 1e6;
}

async function all(): Promise<void> {
  const python = flags.python ?? presentPython(onnxAlone) ?? "python3";
  const folder = mkdtempSync(join(tmpdir(), "orchard-onnx-"));
  const rows: (readonly string[])[] = [];
  try {
    for (const [name, item] of Object.entries(packageModels)) {
      if (positionals.length > 0 && !positionals.some((word) => name.includes(word))) continue;
      const path = await modelPath(item, python);
      const inputs = join(folder, "inputs.npz");
      await io.saveNpz(inputs, inputsOf(item));
      const here = measured([process.execPath, import.meta.path, "--child", path, "--inputs", inputs]);
      const there = measured([python, join(import.meta.dir, "support", "onnx_memory.py"), path, inputs, THREADS]);
      rows.push([name, here.toFixed(1), there.toFixed(1), (here / there).toFixed(2)]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(table(["model", "Orchard, MB", "onnxruntime, MB", "ratio"], rows));
}

if (flags.child === undefined) await all();
else await child(flags.child, flags.inputs!);
