/** Checks the layers of `src` and of `src/nn`: allowed imports according to docs/architecture.md, and no cycles. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { type Counts, noTests } from "../counts.ts";
import { cyclesIn, graphOf } from "./cycles.ts";
import { type Import, importsUnder } from "./imports.ts";

/** The folders and files of a row, which may use those of the rows above. */
export type Layer = readonly string[];

/** The headings of the two tables. */
const headings = { src: "Layers", nn: "Layers of nn" } as const;

/** Returns the rows of the table of a folder. @throws {Error} if there is none */
export function readLayers(markdown: string, folder: keyof typeof headings = "src"): Layer[] {
  const heading = headings[folder];
  const section = new RegExp(`^##+ ${heading}$(.*?)(?=^##+ |$(?![\\s\\S]))`, "ms").exec(markdown)?.[1] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| `"));
  const layers = rows.map((row) => [...row.split("|")[1].matchAll(/`([^`]+)`/g)].map(([, name]) => name));
  if (layers.length === 0)
    throw new Error(`There is no table of layers: a section "## ${heading}" whose rows begin with | \``);
  return layers;
}

/** Returns the violations in a folder and in its folder nn, one sentence each. */
export function layerProblems(root: string, layers: readonly Layer[], nn: readonly Layer[]): string[] {
  const imports = importsUnder(root);
  return [
    ...wrongDirections(imports, layers),
    ...wrongDirections(importsInNn(imports, nn), nn).map((problem) => `nn: ${problem}`),
    ...valueCycles(imports),
    ...cyclesAcrossFolders(imports),
  ];
}

/**
 * Returns the imports among the files of nn, with paths relative to it. A file outside of folders counts as one of the
 * first.
 */
function importsInNn(imports: readonly Import[], layers: readonly Layer[]): Import[] {
  const named = new Set(layers.flat());
  const within = (path: string) => {
    const inner = path.slice("nn/".length);
    return inner.includes("/") || named.has(inner) ? inner : `${layers[0][0]}/${inner}`;
  };
  return imports
    .filter(({ from, to }) => from.startsWith("nn/") && to.startsWith("nn/"))
    .map(({ from, to, runsFirst }) => ({ from: within(from), to: within(to), runsFirst }));
}

/** Returns the folder below the root, or the file directly in it. */
const partOf = (path: string): string => path.split("/", 1)[0];

function wrongDirections(imports: readonly Import[], layers: readonly Layer[]): string[] {
  const rank = new Map(layers.flatMap((layer, at) => layer.map((name) => [name, at] as const)));
  const unknown = new Set(
    imports.flatMap(({ from, to }) => [partOf(from), partOf(to)]).filter((part) => !rank.has(part)),
  );
  const missing = [...unknown].map((part) => `${part} is in no row of the table of layers`);
  const wrong = imports
    .filter(({ from, to }) => partOf(from) !== partOf(to) && rank.get(partOf(from))! <= rank.get(partOf(to))!)
    .map(
      ({ from, to }) => `${from} imports ${to}, but ${partOf(to)} is not above ${partOf(from)} in the table of layers`,
    );
  return [...missing, ...wrong];
}

function valueCycles(imports: readonly Import[]): string[] {
  const edges = imports.filter(({ runsFirst }) => runsFirst).map(({ from, to }) => [from, to] as const);
  return cyclesIn(graphOf(edges)).map((cycle) => `a cycle of imports: ${cycle.join(" → ")}`);
}

/** Types may refer to each other within a folder. */
function cyclesAcrossFolders(imports: readonly Import[]): string[] {
  const graph = graphOf(imports.map(({ from, to }) => [from, to] as const));
  const crosses = (from: string, to: string) => dirname(from) !== dirname(to);
  return cyclesIn(graph, crosses).map((cycle) => `a cycle of types across folders: ${cycle.join(" → ")}`);
}

/** A part of the suite: each problem is a failure. */
export async function checkLayers(): Promise<Counts> {
  const markdown = readFileSync(join(packageRoot, "docs", "architecture.md"), "utf8");
  const failures = layerProblems(join(packageRoot, "src"), readLayers(markdown), readLayers(markdown, "nn"));
  for (const failure of failures) console.log(failure);
  return { ...noTests, passed: failures.length === 0 ? 1 : 0, failed: failures.length, failures };
}
