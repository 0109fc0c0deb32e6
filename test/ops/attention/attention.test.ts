/** Attention against the formula: options alone, in pairs and in triples, and sizes around those of tiles. */
import { afterAll, describe } from "bun:test";
import { writeGaps } from "../run.ts";
import { alone, optionNames, pairsWith, sampledSizes, triples } from "./cases.ts";
import { testCases } from "./run.ts";

describe("attention", () => {
  testCases("options alone", alone);
  for (const name of optionNames)
    if (pairsWith(name).length > 0) testCases(`pairs with ${name}`, pairsWith(name), ["float32"]);
  testCases("pairs with dropout in half precision", pairsWith("dropout"), ["float16", "bfloat16"]);
  testCases("triples", triples(60, 11));
  testCases("sizes", sampledSizes(23), ["float32"]);
  const others = sampledSizes(24);
  for (const [at, dtype] of (["float16", "bfloat16"] as const).entries())
    testCases(
      "sizes in half precision",
      others.filter((_, index) => index % 2 === at),
      [dtype],
    );
});

afterAll(writeGaps);
