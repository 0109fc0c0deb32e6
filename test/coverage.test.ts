/**
 * docs/coverage.md: every function that it lists exists, none that it calls missing does, and no export is left out.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";
import * as library from "../src/index.ts";

const page = readFileSync(join(packageRoot, "docs", "coverage.md"), "utf8");

interface Row {
  readonly theirs: string;
  /** The name in this library, or undefined if the function is missing. */
  readonly ours: string | undefined;
}

const camelCase = (name: string): string =>
  name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

const namesOf = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name);

/** The names in the paragraphs that begin with the given words. */
const listed = (part: string, words: string): string[] =>
  [...part.matchAll(new RegExp(`^${words}: (.*?)\\.$`, "gms"))].flatMap(([, names]) => namesOf(names));

/** The sections: PyTorch's come first; NumPy and MLX share one. */
const [pytorchPart, sharedPart, numpyPart, mlxPart, othersPart] = page.split(
  /^## (?:NumPy and MLX|NumPy|MLX|Other functions)$/m,
) as [string, string, string, string, string];

const rowsOf = (part: string): Row[] => [
  ...listed(part, "Same name").map((theirs) => ({ theirs, ours: camelCase(theirs) })),
  ...listed(part, "Missing").map((theirs) => ({ theirs, ours: undefined })),
  ...[...part.matchAll(/^\| (`.+`) \| `([^`]+)` \|$/gm)].flatMap(([, names, ours]) =>
    namesOf(names).map((theirs) => ({ theirs, ours })),
  ),
];

const [pytorch, shared] = [rowsOf(pytorchPart), rowsOf(sharedPart)];
const [numpy, mlx] = [
  [...shared, ...rowsOf(numpyPart)],
  [...shared, ...rowsOf(mlxPart)],
];
const all = [...pytorch, ...shared, ...rowsOf(numpyPart), ...rowsOf(mlxPart)];
const others = namesOf(othersPart);

/** Whether a name is a method (`x.at`), or is exported, also from a namespace (`linalg.qr`). */
function isHere(name: string): boolean {
  const [first, ...rest] = name.split(".");
  const start: unknown = first === "x" ? library.Tensor.prototype : library;
  const path = first === "x" ? rest : [first, ...rest];
  let at = start;
  for (const part of path) {
    if ((typeof at !== "object" && typeof at !== "function") || at === null || !(part in at)) return false;
    at = first === "x" ? undefined : (at as Record<string, unknown>)[part];
  }
  return true;
}

/** Missing functions whose name has another meaning here: `select` takes an index, as in PyTorch. */
const namesakes = ["select"];

/** Functions of a namespace; classes are described elsewhere. */
const functionsOf = (namespace: object): string[] =>
  Object.entries(namespace)
    .filter(([name, value]) => typeof value === "function" && /^[a-z]/.test(name))
    .map(([name]) => name);

describe("docs/coverage.md lists every name once", () => {
  test("the page lists names of each library, none twice", () => {
    expect([pytorch.length > 400, numpy.length > 300, mlx.length > 200]).toEqual([true, true, true]);
    for (const rows of [pytorch, numpy, mlx]) expect(new Set(rows.map(({ theirs }) => theirs)).size).toBe(rows.length);
    // The three patterns find everything in backticks in a section.
    const start = (part: string) => part.slice(part.indexOf("Same name: "));
    for (const part of [pytorchPart.slice(pytorchPart.indexOf("## Creation")), sharedPart, numpyPart, mlxPart])
      expect(namesOf(start(part)).length).toBe(rowsOf(part).length + [...part.matchAll(/ \| `[^`]+` \|$/gm)].length);
  });

  test("every name that the page lists exists", () => {
    expect(all.filter(({ ours }) => ours !== undefined && !isHere(ours))).toEqual([]);
    expect(others.filter((name) => name !== "linalg" && !isHere(name))).toEqual([]);
  });

  test("a table lists only names that differ in more than camelCase", () => {
    const rows = [...page.matchAll(/^\| (`.+`) \| `([^`]+)` \|$/gm)];
    expect(rows.length).toBeGreaterThan(100);
    expect(rows.filter(([, names, ours]) => namesOf(names).some((theirs) => camelCase(theirs) === ours))).toEqual([]);
  });

  test("a missing function does not exist under its usual name", () => {
    const missing = all.filter(({ ours }) => ours === undefined).map(({ theirs }) => theirs);
    expect(missing.length).toBeGreaterThan(40);
    expect(missing.filter((name) => isHere(camelCase(name)))).toEqual(namesakes);
  });

  test("every exported function is on the page", () => {
    const { fft, linalg, signal } = library;
    const inSpaces = Object.entries({ fft, linalg, signal }).flatMap(([space, functions]) =>
      functionsOf(functions).map((name) => `${space}.${name}`),
    );
    const exported = [...functionsOf(library), ...inSpaces];
    const named = new Set([...all.map(({ ours }) => ours?.replace(/^x\./, "")), ...others]);
    expect(exported.length).toBeGreaterThan(400);
    expect(exported.filter((name) => !named.has(name))).toEqual([]);
  });

  test("the numbers in the text match the lists, at least 405", () => {
    const here = pytorch.filter(({ ours }) => ours !== undefined).length;
    expect(page).toContain(`Of the ${pytorch.length} functions of PyTorch on this page, ${here} are here;`);
    expect(here).toBeGreaterThanOrEqual(405);
  });

  test.each([
    ["NumPy", numpy],
    ["MLX", mlx],
  ] as const)("at least 85 of 100 of %s's functions exist, and the number is right", (name, rows) => {
    const here = rows.filter(({ ours }) => ours !== undefined).length;
    expect(page).toContain(
      `## ${name}\n\n${here} of ${rows.length} functions are here, including those of the sections above.`,
    );
    expect(here / rows.length).toBeGreaterThanOrEqual(0.85);
  });
});
