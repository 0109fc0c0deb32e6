/** The counts in docs/checker.md are up to date. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { Random } from "../../ops/samples.ts";
import { programs } from "./mutants/programs.ts";

const read = (path: string): string => readFileSync(join(packageRoot, path), "utf8");
const page = read("docs/checker.md");
const section = page.split(/^## /m).find((part) => part.startsWith("How it is tested\n"))!;

/** The first number of a row's second column. */
const count = (start: string): number => {
  const row = section.split("\n").find((line) => line.startsWith(`| ${start}`))!;
  return Number(/\d+/.exec(row.split(" | ")[1])![0]);
};

test("the page states the number of kernels of this library", () => {
  expect(count("kernels of this library")).toBe([...new Bun.Glob("kernels/**/*.metal").scanSync(packageRoot)].length);
});

test("the page states the number of drawn programs", () => {
  const all = Number(
    /repeats\(\{ usual: \d+, all: (\d+) \}\)/.exec(read("test/backend/metal/legal/legal.test.ts"))![1],
  );
  expect(count("[legal programs]")).toBe(all);
});

test("the page states the number of planted mistakes in a full run with the default seed", () => {
  const random = new Random(34);
  const all = Array.from({ length: 5 }, () => programs.map((draw) => draw(random))).flat();
  expect(count("[mistakes]")).toBe(all.reduce((sum, { mistakes }) => sum + mistakes.length, 0));
  expect(section).toContain(`planted in ${all.length} drawn kernels of ${programs.length} kinds`);
});

test("the page states how many files of other projects compile", () => {
  const rows = [...page.matchAll(/^\| (?:\S+\/\S+ [0-9a-f]{8}|(\d+) projects [^|]*) \| (\d+) \| (\d+) \|/gm)];
  const total = (column: number) => rows.reduce((sum, row) => sum + Number(row[column] ?? 1), 0);
  expect(section).toContain(`| kernel files of ${total(1)} other projects | ${total(2)} | ${total(3)} compile`);
});
