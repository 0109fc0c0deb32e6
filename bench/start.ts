// From nothing to a first result: a fresh process that imports the package and adds two tensors, beside one that does
// nothing.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";
import { interleaved, table } from "./support/measure.ts";

const rounds = 20;
const from = JSON.stringify(join(packageRoot, "src", "index.ts"));
const firstResult = `import { add, tensor } from ${from};
if (add(tensor([1, 2]), 1).toArray()[1] !== 3) throw new Error("2 + 1 is 3");
`;

/** Each program, and the backend that it asks for. */
const programs: Readonly<Record<string, { readonly source: string; readonly backend: string }>> = {
  "an empty program": { source: "", backend: "cpu" },
  import: { source: `import ${from};\n`, backend: "cpu" },
  "import to first result, cpu": { source: firstResult, backend: "cpu" },
  "import to first result, reference": { source: firstResult, backend: "reference" },
};

/** Milliseconds of processor time of each run, which a busy machine stretches less than the clock's. */
const processorTimes = new Map<string, number[]>();

function runProgram(name: string, path: string, backend: string): void {
  const { exitCode, stderr, resourceUsage } = Bun.spawnSync([process.execPath, path], {
    env: { ...process.env, ORCHARD_BACKEND: backend },
  });
  if (exitCode !== 0) throw new Error(`${name} failed: ${stderr}`);
  processorTimes.set(name, [...(processorTimes.get(name) ?? []), Number(resourceUsage.cpuTime.total) / 1000]);
}

const medianOf = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] as number;

const folder = mkdtempSync(join(tmpdir(), "orchard-start-"));
try {
  const runs: Record<string, () => void> = {};
  for (const [name, { source, backend }] of Object.entries(programs)) {
    const path = join(folder, `${name.replaceAll(/\W/g, "-")}.ts`);
    await Bun.write(path, source);
    runs[name] = () => runProgram(name, path, backend);
  }
  const rows = interleaved(runs, rounds).map(({ name, median, fastest, slowest }) => [
    name,
    ...[median, fastest, slowest, medianOf(processorTimes.get(name) ?? [])].map((time) => time.toFixed(1)),
  ]);
  console.log(`Start of a process, milliseconds, medians of ${rounds} in turn\n`);
  console.log(table(["program", "median", "fastest", "slowest", "processor"], rows));
} finally {
  rmSync(folder, { recursive: true });
}
