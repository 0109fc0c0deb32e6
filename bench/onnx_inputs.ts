// Compares ONNX models of Python packages with onnxruntime on real inputs: speech, notes, pictures with text and files.
// Prints the largest difference and how many decisions differ: `bun bench/onnx_inputs.ts [words…] [--python PROGRAM]`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { onnxAlone, presentPython } from "../scripts/fixtures/environment.ts";
import { io, setBackend, type Tensor } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { decisionsOf, type Inputs, realInputs, type Source } from "./support/onnx_inputs.ts";
import { modelPath, packageModels } from "./support/onnx_models.ts";
import { LineProcess } from "./support/pytorch.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { python: { type: "string" } },
});

setBackend("cpu");
const python = flags.python ?? presentPython(onnxAlone) ?? "python3";
const folder = mkdtempSync(join(tmpdir(), "orchard-onnx-"));
const other = new LineProcess([python, join(import.meta.dir, "support", "onnx.py"), "2"]);

/** The largest difference relative to the largest element of an output. */
function differenceOf(results: Inputs, expected: Inputs): number {
  const differences = Object.entries(results).map(([name, x]) => {
    const most = Math.max(Number(expected[name].to("float32").abs().amax().item()), 1e-4);
    return Number(x.to("float32").sub(expected[name].to("float32")).abs().amax().item()) / most;
  });
  return Math.max(...differences);
}

async function compare(name: string, source: Source): Promise<readonly (string | number)[]> {
  const path = await modelPath(packageModels[name], python);
  const model = await io.loadOnnx(path);
  const [given, found] = [join(folder, "inputs.npz"), join(folder, "outputs.npz")];
  let [runs, worst, differing, decisions] = [0, 0, 0, 0];
  let results: Inputs = {};
  for (let inputs = source(0, results); inputs; inputs = source(++runs, results)) {
    await io.saveNpz(given, inputs);
    await other.ask(JSON.stringify({ ...(runs === 0 ? { path } : {}), inputs: given, outputs: found }));
    results = (await model.run(inputs)) as Record<string, Tensor>;
    const expected = await io.loadNpz(found);
    worst = Math.max(worst, differenceOf(results, expected));
    const [mine, theirs] = [decisionsOf(results), decisionsOf(expected)];
    decisions += mine.length;
    differing += mine.filter((decision, at) => decision !== theirs[at]).length;
  }
  return [name, runs, worst.toExponential(1), decisions, differing];
}

try {
  await other.hear(); // it is ready
  const rows: (readonly (string | number)[])[] = [];
  for (const [name, source] of Object.entries(await realInputs()))
    if (positionals.length === 0 || positionals.some((word) => name.includes(word)))
      rows.push(await compare(name, source));
  console.log(table(["model", "runs", "largest difference", "decisions", "different"], rows));
} finally {
  await other.close();
  rmSync(folder, { recursive: true, force: true });
}
