// Measures the time to a first result: a new process that imports the library and adds two tensors, compared with one
// that does nothing. The library is loaded from this clone's sources, and from the installed package.
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageFile from "../package.json";
import { packageRoot } from "../src/core/paths.ts";
import { buildHere, installPackage } from "./support/installed.ts";
import { interleaved, table } from "./support/measure.ts";

const rounds = 20;
const { name } = packageFile;
const importing = (from: string): string => `import ${JSON.stringify(from)};\n`;
const firstResult = (from: string): string => `import { add, tensor } from ${JSON.stringify(from)};
if (add(tensor([1, 2]), 1).toArray()[1] !== 3) throw new Error("2 + 1 is 3");
`;
const sources = join(packageRoot, "src", "index.ts");

/** Each program, with whether it runs in the folder with the installed package. */
const programs: Readonly<
  Record<string, { readonly text: string; readonly folder?: string; readonly backend?: string }>
> = {
  "an empty program": { text: "" },
  "sources: import": { text: importing(sources) },
  "sources: import to first result": { text: firstResult(sources) },
  "package: import": { text: importing(name), folder: "installed" },
  "package: import to first result": { text: firstResult(name), folder: "installed" },
  "package: the same, reference": { text: firstResult(name), folder: "installed", backend: "reference" },
  "package: the same without bytecode": { text: firstResult(name), folder: "text" },
};

/** Returns the CPU milliseconds of each run, which a busy machine affects less than elapsed time. */
const processorTimes = new Map<string, number[]>();

function runProgram(program: string, path: string, backend: string): void {
  const { exitCode, stderr, resourceUsage } = Bun.spawnSync([process.execPath, path], {
    env: { ...process.env, ORCHARD_BACKEND: backend, ...buildHere },
  });
  if (exitCode !== 0 || stderr.length > 0) throw new Error(`${program} failed: ${stderr}`);
  processorTimes.set(program, [...(processorTimes.get(program) ?? []), Number(resourceUsage.cpuTime.total) / 1000]);
}

const medianOf = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] as number;

const folder = mkdtempSync(join(tmpdir(), "orchard-start-"));
try {
  await installPackage(join(folder, "installed"));
  cpSync(join(folder, "installed"), join(folder, "text"), { recursive: true, verbatimSymlinks: true });
  rmSync(join(folder, "text", "node_modules", name, "src", "bundle", "bytecode.js"));
  const runs: Record<string, () => void> = {};
  for (const [program, { text, folder: place = ".", backend = "cpu" }] of Object.entries(programs)) {
    const path = join(folder, place, `${program.replaceAll(/\W/g, "-")}.ts`);
    await Bun.write(path, text);
    runs[program] = () => runProgram(program, path, backend);
  }
  const rows = interleaved(runs, rounds).map(({ name: program, median, fastest, slowest }) => [
    program,
    ...[median, fastest, slowest, medianOf(processorTimes.get(program) ?? [])].map((time) => time.toFixed(1)),
  ]);
  console.log(`Start of a process, milliseconds, medians of ${rounds} in turn\n`);
  console.log(table(["program", "median", "fastest", "slowest", "processor"], rows));
} finally {
  rmSync(folder, { recursive: true });
}
