/** Attention against the formula: options alone, in pairs and in triples, and sizes around those of tiles. */
import { afterAll, describe, expect, test } from "bun:test";
import { isExhaustive } from "../../support/repeats.ts";
import { tested, writeGaps } from "../run.ts";
import {
  alone,
  broadcasts,
  drawTriples,
  optionNames,
  pairs,
  pairsIn,
  pairsWith,
  rows,
  sampledSizes,
  triples,
  wide,
} from "./cases.ts";
import { checkCase, testCases } from "./run.ts";

describe("attention accepts large heads", () => {
  testCases("options alone", alone);
  testCases("triples", triples(11)); // triples contain every pair, and run in every dtype
  if (isExhaustive) {
    for (const name of optionNames)
      if (pairsWith(name).length > 0) testCases(`pairs with ${name}`, pairsWith(name), ["float32"]);
    testCases("pairs with dropout in half precision", pairsWith("dropout"), ["float16", "bfloat16"]);
  }
  testCases("biases and masks of every shape", broadcasts, ["float32"]);
  testCases("sizes", sampledSizes(23), ["float32"]);
  const others = sampledSizes(24);
  for (const [at, dtype] of (["float16", "bfloat16"] as const).entries())
    testCases(
      "sizes in half precision",
      others.filter((_, index) => index % 2 === at),
      [dtype],
    );
  for (const backend of tested)
    test(`dims over 256 are accepted on ${backend}`, () => {
      for (const each of wide) checkCase(each, "float32", { name: `${backend} unfused`, backend, path: "unfused" });
    });
});

describe("the table of cases is complete", () => {
  test("the table has every option, and every pair of compatible options in a triple", () => {
    expect(new Set(alone.flatMap(({ name }) => name.split(" ")[0]))).toEqual(new Set(["plain", ...optionNames]));
    const inTriples = new Set(drawTriples(11).flatMap(pairsIn));
    expect(inTriples).toEqual(new Set(pairs.map((pair) => pair.toSorted().join("+"))));
    expect(pairs.length).toBeGreaterThan(150);
  });

  test("the table has every size as the number of queries, of keys, and of elements of q's and of v's rows", () => {
    const all = [...sampledSizes(23), ...wide];
    for (const role of ["queries", "keys", "dim", "valueDim"] as const) {
      const sizes = new Set(all.map((each) => each[role]));
      expect(rows.filter((size) => !sizes.has(size))).toEqual([]);
    }
  });
});

afterAll(writeGaps);
