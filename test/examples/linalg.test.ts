/** The examples of linear algebra, as a user runs them: their output is right, and they draw a picture. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const { path: folder } = testFolder("examples");

/** The output of an example, and the size of its picture. */
function run(name: string, ...words: string[]) {
  const picture = join(folder, `${name}.png`);
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, `examples/${name}.ts`, picture, ...words], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  const png = readFileSync(picture);
  expect(png.subarray(1, 4).toString()).toBe("PNG");
  return { out: stdout.toString(), width: png.readUInt32BE(16), height: png.readUInt32BE(20), bytes: png.length };
}

const numberIn = (out: string, pattern: RegExp): number => Number(pattern.exec(out)?.[1]);

describe("examples of linear algebra", () => {
  test("the example finds principal components of digits", () => {
    const { out, width, height, bytes } = run("pca", "1500");
    expect([width, height]).toEqual([1920, 1080]);
    expect(bytes).toBeGreaterThan(50_000);
    expect(numberIn(out, /orthonormal to (\S+)/)).toBeLessThan(1e-5);
    const [ten, left] = [numberIn(out, /first ten: (\S+) %/), numberIn(out, /leave (\S+) %/)];
    expect(ten).toBeGreaterThan(45);
    // The squared error of the components is the sum of the other eigenvalues.
    expect(Math.abs(ten + left - 100)).toBeLessThan(0.11);
  });

  test("the example fits a Gaussian process", () => {
    const { out, width, bytes } = run("gaussian_process");
    expect([width, bytes > 20_000]).toEqual([1920, true]);
    const [before, after] = [numberIn(out, /: (\S+) before/), numberIn(out, /before, (\S+) after/)];
    expect(after).toBeLessThan(before - 5);
    expect(Math.abs(numberIn(out, /noise (\S+) \(/) - 0.15)).toBeLessThan(0.06);
    expect(numberIn(out, /deviations at (\d+) of/)).toBeGreaterThan(180);
  });

  test("the example solves least squares with a rank-deficient design matrix", () => {
    const { out, width } = run("least_squares");
    expect(width).toBe(1920);
    expect(out).toContain("a design of 120 rows and 5 columns, of rank 4");
    expect(numberIn(out, /pinv agree to (\S+)/)).toBeLessThan(1e-12);
    const residuals = [...out.matchAll(/residual (\S+),/g)].map(([, value]) => value);
    expect([residuals.length, new Set(residuals).size]).toEqual([2, 1]);
    const lengths = [...out.matchAll(/length (\S+),/g)].map(([, value]) => Number(value));
    expect(lengths[0]).toBeLessThan(lengths[1]);
    expect(Math.abs(numberIn(out, /slope (\S+) \(0.8\)/) - 0.8)).toBeLessThan(0.06);
  });
});
