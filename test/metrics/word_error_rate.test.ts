/** Word error rates compared with the definition: the least number of changes, over all alignments. */
import { expect, test } from "bun:test";
import { ArgumentError, metrics } from "../../src/index.ts";
import { Random } from "../ops/samples.ts";
import { seed } from "../support/some.ts";

const random = new Random(seed);

/** The least number of changes: the first words match, or one of them is deleted, inserted or substituted. */
function changes(wanted: readonly string[], given: readonly string[]): number {
  if (wanted.length === 0 || given.length === 0) return wanted.length + given.length;
  const [[first, ...others], [other, ...rest]] = [wanted, given] as unknown as [[string, ...string[]], string[]];
  if (first === other) return changes(others, rest);
  return 1 + Math.min(changes(others, rest), changes(others, given), changes(wanted, rest));
}

const draw = (least: number) =>
  Array.from({ length: random.integer(least, 6) }, () => ["a", "b", "c", "don't"][random.integer(0, 3)]);

test("drawn texts have the rate of their edit distances", () => {
  for (let turn = 0; turn < 60; turn++) {
    const pairs = Array.from({ length: random.integer(1, 3) }, () => [draw(1), draw(0)] as const);
    const [references, hypotheses] = [0, 1].map((at) => pairs.map((pair) => pair[at].join(" ")));
    const wanted = pairs.reduce((total, [a, b]) => total + changes(a, b), 0);
    const words = pairs.reduce((total, [a]) => total + a.length, 0);
    expect(metrics.wordErrorRate(references, hypotheses)).toBe(wanted / words);
  }
});

test("error rates of words are known: texts of jiwer's documentation, spaces, and more errors than words", () => {
  expect(metrics.wordErrorRate("hello world", "hello duck")).toBe(0.5);
  expect(metrics.wordErrorRate(["hello world", "i like monthy python"], ["hello duck", "i like python"])).toBe(2 / 6);
  expect(metrics.wordErrorRate("  a \n b ", "a b")).toBe(0);
  expect(metrics.wordErrorRate("a", "b c d")).toBe(3);
});

test("invalid arguments are errors", () => {
  expect(() => metrics.wordErrorRate(["a", "b"], ["a"])).toThrow(ArgumentError);
  expect(() => metrics.wordErrorRate(" ", "a")).toThrow("at least one word");
  expect(() => metrics.wordErrorRate("a", 3 as never)).toThrow(ArgumentError);
});
