/** The table of a model fits a terminal of 80 columns, and no cell loses text. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { zeros } from "../../../src/index.ts";
import { formatSummary, type SummaryLayer } from "../../../src/nn/layers/summary.ts";

const word = fc.string({ unit: fc.constantFrom(..."abcXYZ09_"), minLength: 1, maxLength: 25 });
const path = fc.array(word, { minLength: 1, maxLength: 9 }).map((words) => words.join("."));
const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 6 });
const layer: fc.Arbitrary<SummaryLayer> = fc.record({
  name: path,
  kind: word,
  tensors: fc.array(
    fc.tuple(
      word,
      shape.map((own) => zeros(own, { requiresGrad: true })),
    ),
    { minLength: 1, maxLength: 5 },
  ),
});

/** The text of each column of a row, over all its lines. */
function cellsOf(lines: readonly string[], rule: string): string[] {
  let start = 0;
  return rule.split("  ").map((dashes) => {
    const cell = lines.map((line) => line.slice(start, start + dashes.length)).join("");
    start += dashes.length + 2;
    return cell.replaceAll(" ", "");
  });
}

test("every line has at most 80 columns, and the cells have their full texts", () => {
  fc.assert(
    fc.property(fc.array(layer, { minLength: 1, maxLength: 4 }), fc.boolean(), (layers, hasResults) => {
      const results = hasResults ? new Map(layers.map(({ name }) => [name, "float32 [1, 2, 3] and more"])) : undefined;
      const lines = formatSummary(layers, results).split("\n");
      expect(Math.max(...lines.slice(0, -1).map(({ length }) => length))).toBeLessThanOrEqual(80);
      const rule = lines[1];
      const [, , ...rest] = lines;
      const body = rest.slice(0, rest.indexOf(rule));
      const all = cellsOf(body, rule);
      expect(all[0]).toBe(layers.map(({ name }) => name).join(""));
      expect(all[1]).toBe(layers.map(({ kind }) => kind).join(""));
      const state = layers.map(({ tensors }) => tensors.map(([name, x]) => `${name}[${x.shape.join(",")}]`).join(","));
      expect(all[hasResults ? 3 : 2]).toBe(state.join(""));
    }),
    { numRuns: 200 },
  );
});
