// Runs trained ONNX models of Python packages here and in onnxruntime, on the same number of threads
// (ORCHARD_CPU_THREADS): `bun bench/onnx.ts [words…] [--rounds 5] [--python PROGRAM]`.
//
// Inputs are random. Results are compared first. Both run in turn. The time of a turn is the lowest decile of its runs,
// which other load affects least. The median of the turns is reported. The ratio is onnxruntime's time divided by
// Orchard's: above 1, Orchard is faster.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { onnxAlone, presentPython } from "../scripts/fixtures/environment.ts";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { io, manualSeed, setBackend, Tensor } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { inputsOf, modelPath, packageModels } from "./support/onnx_models.ts";
import { LineProcess } from "./support/pytorch.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "5" }, python: { type: "string" } },
});

setBackend("cpu");
const { threads } = cpuInfo(cpuLibrary().native);
const python = flags.python ?? presentPython(onnxAlone) ?? "python3";
const folder = mkdtempSync(join(tmpdir(), "orchard-onnx-"));
const other = new LineProcess([python, join(import.meta.dir, "support", "onnx.py"), `${threads}`]);

/** Returns the milliseconds that the other library takes for a request. */
const askOther = async (words: Readonly<Record<string, string | number>>): Promise<number> =>
  (JSON.parse(await other.ask(JSON.stringify(words))) as { milliseconds: number }).milliseconds;

const quantileOf = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];
const medianOf = (values: readonly number[]): number => quantileOf(values, 0.5);
/** The lowest decile. */
const decileOf = (values: readonly number[]): number => quantileOf(values, 0.1);

/** The largest difference relative to the largest element. */
function differenceOf(actual: Tensor, expected: Tensor): number {
  const [a, b] = [actual, expected].map((x) => Array.from(x.dataSync() as ArrayLike<number>, Number));
  const most = b.reduce((result, value) => Math.max(result, Math.abs(value)), 1e-4);
  return a.reduce((result, value, at) => Math.max(result, Math.abs(value - b[at])), 0) / most;
}

/** Warm-up time of a model in milliseconds, in which JavaScript is compiled. */
const WARMING = 1000;
/** The duration of a turn in milliseconds. */
const TURN = 300;

async function measure(name: string, item: (typeof packageModels)[string]): Promise<readonly (string | number)[]> {
  manualSeed(1);
  const path = await modelPath(item, python);
  const inputs = inputsOf(item);
  const files = { inputs: join(folder, "inputs.npz"), outputs: join(folder, "outputs.npz") };
  await io.saveNpz(files.inputs, inputs);
  const loaded = await askOther({ path, ...files });
  const begun = performance.now();
  const model = await io.loadOnnx(path);
  const loading = performance.now() - begun;
  const once = async (): Promise<number> => {
    const start = performance.now();
    const results = await model.run(inputs);
    for (const value of Object.values(results)) if (value instanceof Tensor) value.dispose();
    return performance.now() - start;
  };
  const expected = await io.loadNpz(files.outputs);
  const results = await model.run(inputs);
  const differences = Object.entries(results).map(([key, x]) => differenceOf(x as Tensor, expected[key] as Tensor));
  const warm: number[] = [];
  for (const start = performance.now(); warm.length < 3 || performance.now() - start < WARMING; )
    warm.push(await once());
  const count = Math.max(10, Math.ceil(TURN / medianOf(warm)));
  const [here, there]: [number[], number[]] = [[], []];
  for (let round = 0; round < Number(flags.rounds); round++) {
    const times: number[] = [];
    for (let at = 0; at < count; at++) times.push(await once());
    here.push(decileOf(times));
    there.push(await askOther({ count }));
  }
  const [mine, theirs] = [medianOf(here), medianOf(there)];
  ratios.push(theirs / mine);
  const fixed = (value: number) => value.toFixed(value < 10 ? 2 : 1);
  const loads = [fixed(loading), fixed(loaded)];
  return [
    name,
    fixed(mine),
    fixed(theirs),
    (theirs / mine).toFixed(2),
    ...loads,
    Math.max(...differences).toExponential(1),
  ];
}

const ratios: number[] = [];
try {
  await other.hear(); // the other library is ready
  const rows: (readonly (string | number)[])[] = [];
  for (const [name, item] of Object.entries(packageModels))
    if (positionals.length === 0 || positionals.some((word) => name.includes(word)))
      rows.push(await measure(name, item));
  console.log(`${threads} threads, times in milliseconds\n`);
  console.log(table(["model", "Orchard", "onnxruntime", "ratio", "loading", "its loading", "difference"], rows));
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  console.log(`\ngeometric mean of the ratios: ${mean.toFixed(2)}`);
} finally {
  await other.close();
  rmSync(folder, { recursive: true, force: true });
}
