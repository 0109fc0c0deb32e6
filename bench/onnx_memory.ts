// Compares the peak memory of ONNX models in Orchard and onnxruntime on Linux, each in a new process:
// `bun bench/onnx_memory.ts [words…] [--python PROGRAM] [--node FOLDER]`. With a folder whose node_modules has
// onnxruntime-node, Node.js is the other process. The first columns are the growth from the time before a model is
// loaded; the last ones are the peaks of whole processes.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { onnxAlone, presentPython } from "../scripts/fixtures/environment.ts";
import { io, rand, setBackend, Tensor } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { inputsOf, modelPath, type PackageModel, packageModels } from "./support/onnx_models.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    python: { type: "string" },
    node: { type: "string" },
    child: { type: "string" },
    inputs: { type: "string" },
  },
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

interface Peak {
  /** Megabytes that loading and running a model added. */
  readonly added: number;
  readonly whole: number;
}

function measured(words: readonly string[]): Peak {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...words], {
    env: { ...process.env, ORCHARD_CPU_THREADS: THREADS },
  });
  if (exitCode !== 0) throw new Error(stderr.toString());
  const [before = 0, after = 0] = stdout.toString().trim().split(" ").map(Number);
  return { added: (after - before) / 1e6, whole: after / 1e6 };
}

async function all(): Promise<void> {
  const python = flags.python ?? presentPython(onnxAlone) ?? "python3";
  const support = join(import.meta.dir, "support");
  const otherWords = (path: string, inputs: string, item: PackageModel) =>
    flags.node === undefined
      ? [python, join(support, "onnx_memory.py"), path, inputs, THREADS]
      : ["node", join(support, "peers", "onnx_memory.mjs"), flags.node, path, JSON.stringify(item), THREADS];
  const folder = mkdtempSync(join(tmpdir(), "orchard-onnx-"));
  const rows: (readonly string[])[] = [];
  try {
    for (const [name, item] of Object.entries(packageModels)) {
      if (positionals.length > 0 && !positionals.some((word) => name.includes(word))) continue;
      const path = await modelPath(item, python);
      const inputs = join(folder, "inputs.npz");
      await io.saveNpz(inputs, inputsOf(item));
      const here = measured([process.execPath, import.meta.path, "--child", path, "--inputs", inputs]);
      const there = measured(otherWords(path, inputs, item));
      const columns = (["added", "whole"] as const).flatMap((part) => [
        here[part].toFixed(1),
        there[part].toFixed(1),
        (here[part] / there[part]).toFixed(2),
      ]);
      rows.push([name, ...columns]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(table(["model", "Orchard, MB", "onnxruntime, MB", "ratio", "whole, MB", "its whole, MB", "ratio"], rows));
}

if (flags.child === undefined) await all();
else await child(flags.child, flags.inputs!);
