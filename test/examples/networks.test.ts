/** The examples that train networks, as a user runs them, for a few steps: losses fall. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const { path: folder } = testFolder("networks");

/** The output of a program, and the losses in it. */
function run(...words: readonly string[]): { readonly out: string; readonly losses: readonly number[] } {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, ...words], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  const out = stdout.toString();
  return { out, losses: [...out.matchAll(/loss (\d+\.\d+)/g)].map(([, loss]) => Number(loss)) };
}

test("a convolutional network recognizes digits after training on a few hundred", () => {
  const { out, losses } = run("examples/cnn.ts", "2560", "1", "500");
  expect(losses).toHaveLength(10);
  expect(losses.at(-1)!).toBeLessThan(losses[0] / 3);
  expect(Number(/accuracy (\d+\.\d+) % on 500 unseen digits/.exec(out)![1])).toBeGreaterThan(75);
});

test("an LSTM continues a series", () => {
  const { out, losses } = run("examples/series.ts", "60");
  expect(losses.at(-1)!).toBeLessThan(losses[0] / 10);
  expect(Number(/40 values ahead: a root mean square error of (\d\.\d+)/.exec(out)![1])).toBeLessThan(0.5);
});

test("a variational autoencoder's loss falls each epoch, and it draws digits", () => {
  const picture = join(folder, "vae.svg");
  const { losses } = run("examples/vae.ts", picture, "2560", "3");
  expect(losses).toHaveLength(3);
  expect(losses).toEqual(losses.toSorted((a, b) => b - a));
  expect(losses.at(-1)!).toBeLessThan(losses[0] - 50);
  expect(readFileSync(picture, "utf8")).toContain("Digits that a variational autoencoder drew");
});

test("a small CLIP learns which description belongs to a drawing, and ranks drawings", () => {
  const picture = join(folder, "shapes.svg");
  const { out, losses } = run("examples/search_images.ts", picture, "60");
  expect(losses.at(-1)!).toBeLessThan(losses[0] - 0.5);
  expect(out).toContain("% of the first results are drawings of the sentence");
  expect(readFileSync(picture, "utf8")).toContain("Drawings that a small CLIP finds by sentences");
});

test("a diffusion model's loss falls, and it draws digits", () => {
  const picture = join(folder, "diffusion.svg");
  const { losses } = run("examples/diffusion.ts", picture, "256", "2");
  expect(losses).toHaveLength(2);
  expect(losses[1]).toBeLessThan(losses[0] - 0.1);
  expect(readFileSync(picture, "utf8")).toContain("Digits that a diffusion model drew");
});
