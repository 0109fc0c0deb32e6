/** docs/coverage.md: every name that it says is here is here, and no other one is. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";
import * as library from "../src/index.ts";

const page = readFileSync(join(packageRoot, "docs", "coverage.md"), "utf8");

interface Row {
  readonly theirs: string;
  readonly ours: string | undefined;
}

/** The tables below a heading of each library; PyTorch's come first. */
const [pytorch, numpy, mlx] = page
  .split(/^## (?:NumPy|MLX)$/m)
  .map((part) =>
    [...part.matchAll(/^\| `([^`]+)` \| (?:`([^`]+)`|—) \|$/gm)].map(
      ([, theirs, ours]): Row => ({ theirs: theirs!, ours }),
    ),
  ) as [Row[], Row[], Row[]];

/** Whether a name is a method (`x.at`), or is exported, also from a namespace (`linalg.qr`). */
function isHere(name: string): boolean {
  const [first, ...others] = name.split(".");
  const start: unknown = first === "x" ? library.Tensor.prototype : library;
  const path = first === "x" ? others : [first!, ...others];
  let at = start;
  for (const part of path) {
    if ((typeof at !== "object" && typeof at !== "function") || at === null || !(part in at)) return false;
    at = first === "x" ? undefined : (at as Record<string, unknown>)[part];
  }
  return true;
}

const camelCase = (name: string): string =>
  name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** Such as `linalg.qr` of `torch.linalg.qr`, and `ctcLoss` of `F.ctc_loss`. */
const usualName = (theirs: string): string => camelCase(theirs.replace(/^(torch|F|np|mx)\./, ""));

/** What is here under the name is another function: `select` takes an index, as PyTorch's. */
const others = ["np.select"];

describe("docs/coverage.md", () => {
  test("has tables of each library", () => {
    expect([pytorch.length > 400, numpy.length > 300, mlx.length > 200]).toEqual([true, true, true]);
    for (const rows of [pytorch, numpy, mlx]) expect(new Set(rows.map(({ theirs }) => theirs)).size).toBe(rows.length);
  });

  test("every name is here", () => {
    const named = [...pytorch, ...numpy, ...mlx].filter(({ ours }) => ours !== undefined);
    expect(named.filter(({ ours }) => !isHere(ours!))).toEqual([]);
  });

  test("what has a dash is not here under its usual name", () => {
    const dashes = [...pytorch, ...numpy, ...mlx].filter(({ ours }) => ours === undefined);
    expect(dashes.map(({ theirs }) => theirs).filter((name) => isHere(usualName(name)))).toEqual(others);
  });

  test("the numbers in the text are those of the tables, at least 405", () => {
    const here = pytorch.filter(({ ours }) => ours !== undefined).length;
    expect(page).toContain(`Of the ${pytorch.length} functions of PyTorch in these tables, ${here} are here;`);
    expect(here).toBeGreaterThanOrEqual(405);
  });

  test.each([
    ["NumPy", numpy],
    ["MLX", mlx],
  ] as const)("of %s's functions at least 85 of 100 are here, and the number is right", (library, rows) => {
    const here = rows.filter(({ ours }) => ours !== undefined).length;
    expect(page).toContain(`## ${library}\n\n${here} of ${rows.length}.`);
    expect(here / rows.length).toBeGreaterThanOrEqual(0.85);
  });
});
