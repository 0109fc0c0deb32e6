/** The check of layers finds violations, and its table is the one in the architecture page. */
import { beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { layerProblems, readLayers } from "../../scripts/suite/layers.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

const markdown = readFileSync(join(packageRoot, "docs", "architecture.md"), "utf8");
const layers = readLayers(markdown);
const layersOfNn = readLayers(markdown, "nn");
let root: string;

beforeEach(() => {
  root = testFolder("layers").path;
});

/** The problems of a tree of these files. */
function problemsOf(files: Record<string, string>): string[] {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return layerProblems(root, layers, layersOfNn);
}

test("the table of docs/architecture.md names every folder of src once", () => {
  const folders = [...new Bun.Glob("*").scanSync({ cwd: join(packageRoot, "src"), onlyFiles: false })];
  expect(layers.flat().toSorted()).toEqual(folders.toSorted());
});

test("the table of nn names every folder of src/nn once", () => {
  const files = [...new Bun.Glob("*/**/*.ts").scanSync({ cwd: join(packageRoot, "src", "nn") })];
  const folders = new Set(files.map((file) => file.split("/", 1)[0]));
  expect(layersOfNn.flat().toSorted()).toEqual([...folders, "index.ts"].toSorted());
});

test("a missing table is an error", () => {
  expect(() => readLayers("## Layers\n\nnone\n\n## Others\n\n| `a` | b |\n")).toThrow("no table of layers");
});

describe("the check of layers accepts", () => {
  test("imports from upper layers are accepted", () => {
    expect(
      problemsOf({
        "core/errors.ts": "export class OrchardError extends Error {}",
        "tensor/tensor.ts": 'import { OrchardError } from "../core/errors.ts";\nexport const e = OrchardError;',
        "index.ts": 'export * from "./tensor/tensor.ts";',
      }),
    ).toEqual([]);
  });

  test("cycles of types within a folder are accepted", () => {
    expect(
      problemsOf({
        "tensor/a.ts": 'import { type B, b } from "./b.ts";\nexport type A = B;\nusing a = b;',
        "tensor/b.ts": 'import type { A } from "./a.ts";\nexport type B = A[];\nexport const b = null;',
      }),
    ).toEqual([]);
  });
});

describe("the check of layers rejects", () => {
  const upward = "core/a.ts imports tensor/b.ts, but tensor is not above core in the table of layers";
  test.each([
    ["a value", 'import { b } from "../tensor/b.ts";'],
    ["a type", 'import type { B } from "../tensor/b.ts";'],
    ["a re-export", 'export { b } from "../tensor/b.ts";'],
    ["a whole module", 'export * from "../tensor/b.ts";'],
    ["an effect", 'import "../tensor/b.ts";'],
    ["import()", 'export const b = () => import("../tensor/b.ts");'],
  ])("an import from a lower layer is rejected: %s", (_, text) => {
    expect(problemsOf({ "core/a.ts": text, "tensor/b.ts": "export const b = 1; export type B = 1;" })).toEqual([
      upward,
    ]);
  });

  test("an import from a folder in the same row is rejected", () => {
    expect(problemsOf({ "data/a.ts": 'import "../optim/b.ts";', "optim/b.ts": "export {};" })).toEqual([
      "data/a.ts imports optim/b.ts, but optim is not above data in the table of layers",
    ]);
  });

  test("an import from a lower layer of nn, or from the same row, is rejected", () => {
    const text = 'import { b } from "../models/b.ts";';
    const files = { "nn/layers/a.ts": text, "nn/transformer/a.ts": text, "nn/a.ts": 'import "./cache/c.ts";' };
    expect(problemsOf({ ...files, "nn/models/b.ts": "export const b = 1;", "nn/cache/c.ts": "" })).toEqual([
      "nn: layers/a.ts imports cache/c.ts, but cache is not above layers in the table of layers",
      "nn: layers/a.ts imports models/b.ts, but models is not above layers in the table of layers",
      "nn: transformer/a.ts imports models/b.ts, but models is not above transformer in the table of layers",
    ]);
  });

  test("a folder that is missing in the table is rejected", () => {
    expect(problemsOf({ "attic/a.ts": 'import "./b.ts";', "attic/b.ts": "export {};" })).toEqual([
      "attic is in no row of the table of layers",
    ]);
  });

  test("a cycle of values is rejected, by its files, within a folder too", () => {
    const importing = (name: string) => `import { x as y } from "./${name}.ts";\nexport const x = () => y;`;
    expect(
      problemsOf({ "core/a.ts": importing("b"), "core/b.ts": importing("c"), "core/c.ts": importing("a") }),
    ).toEqual(["a cycle of imports: core/a.ts → core/b.ts → core/c.ts → core/a.ts"]);
  });

  test("a cycle of types across folders is rejected, next to one within a folder", () => {
    expect(
      problemsOf({
        "ops/a.ts": 'import type { B } from "./b.ts";\nimport type { C } from "./view/c.ts";\nexport type A = B | C;',
        "ops/b.ts": 'import type { A } from "./a.ts";\nexport type B = A[];',
        "ops/view/c.ts": 'import type { A } from "../a.ts";\nexport type C = { a: A };',
      }),
    ).toEqual(["a cycle of types across folders: ops/a.ts → ops/view/c.ts → ops/a.ts"]);
  });
});
