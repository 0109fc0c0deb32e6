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
const usualName = (theirs: string): string => camelCase(theirs.replace(/^(torch|F)\./, ""));

describe("docs/coverage.md", () => {
  test("has tables of each library", () => {
    expect([pytorch.length > 400, numpy.length > 40, mlx.length > 20]).toEqual([true, true, true]);
    expect(new Set(pytorch.map(({ theirs }) => theirs)).size).toBe(pytorch.length);
  });

  test("every name is here", () => {
    const named = [...pytorch, ...numpy, ...mlx].filter(({ ours }) => ours !== undefined);
    expect(named.filter(({ ours }) => !isHere(ours!))).toEqual([]);
  });

  test("what has a dash is not here under its usual name", () => {
    expect(pytorch.filter(({ theirs, ours }) => ours === undefined && isHere(usualName(theirs)))).toEqual([]);
  });

  test("the numbers in the text are those of the tables, at least 270", () => {
    const here = pytorch.filter(({ ours }) => ours !== undefined).length;
    expect(page).toContain(`Of the ${pytorch.length} functions of PyTorch in these tables, ${here} are here;`);
    expect(here).toBeGreaterThanOrEqual(270);
  });
});
