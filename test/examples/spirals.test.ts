/** The README's program with its picture, as a user runs it. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const { path: folder } = testFolder("spirals");

test("the spirals are separated, and the picture shows the progress", () => {
  const picture = join(folder, "spirals.svg");
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "examples/spirals.ts", picture], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  expect(stdout.toString()).toBe(`100 % of the points are on the right side\nwrote ${picture}\n`);
  const svg = readFileSync(picture, "utf8");
  const right = [...svg.matchAll(/>(\d+) steps, (\d+) % right</g)].map(([, step, share]) => [step, Number(share)]);
  expect(right.map(([step]) => step)).toEqual(["10", "60", "300"]);
  const shares = right.map(([, share]) => share as number);
  expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  expect([shares[0] < 80, shares[2]]).toEqual([true, 100]);
  expect(svg.length).toBeLessThan(40_000);
});

test("the example is the README's program", () => {
  const lines = (path: string) => readFileSync(join(packageRoot, path), "utf8").split("\n");
  const program = /```ts\n(.*?)```/s.exec(lines("README.md").join("\n"))![1].split("\n");
  const example = lines("examples/spirals.ts");
  const shared = program.filter((line) => line.startsWith("const ") || line.startsWith("  "));
  expect(shared).toHaveLength(8);
  expect(shared.filter((line) => !example.includes(line))).toEqual([]);
});
