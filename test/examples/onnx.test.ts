/** Tests the examples with ONNX models if their packages are downloaded, as by `bun examples/speech.ts`. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const { path: folder } = testFolder("onnx-examples");
const isPresent = (...names: readonly string[]): boolean =>
  names.every((name) => existsSync(join(packageRoot, "build", "packages", name)));

function printed(name: string, ...words: readonly string[]): string[] {
  const { stdout, exitCode } = Bun.spawnSync([...bunWords, `examples/${name}.ts`, ...words], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  expect(exitCode).toBe(0);
  return stdout.toString().trimEnd().split("\n");
}

/** Runs an example that draws an image. */
async function lines(name: string): Promise<string[]> {
  const picture = join(folder, `${name}.png`);
  const all = printed(name, picture);
  const png = await Bun.file(picture).bytes();
  expect([String.fromCharCode(...png.subarray(1, 4)), png.length > 10_000]).toEqual(["PNG", true]);
  return all.slice(0, -1);
}

test.skipIf(!isPresent("silero-vad==6.2.3", "mespeak@2.0.2"))("speech is located", async () => {
  const numbers = (await lines("speech")).map((line) => line.match(/[\d.]+(?= s)/g)!.map(Number));
  expect(numbers).toHaveLength(2);
  const [first, second] = numbers as [number[], number[]];
  expect(Math.abs(first[0] - 1)).toBeLessThan(0.2);
  expect(first[1]).toBeLessThan(second[0] - 2); // noise and music are between the two sentences
});

test.skipIf(!isPresent("rapidocr-onnxruntime==1.4.4"))("the text of a drawn picture is read", async () => {
  const found = await lines("read_text");
  expect(found).toContain("Two slices of plum cake 5.80");
  expect(found).toHaveLength(6);
});

test.skipIf(!isPresent("magika==1.0.3"))("file types are recognized", async () => {
  const found = (await lines("file_kinds")).map((line) => line.replace(/ \(.*/, ""));
  expect(found).toContain("package.json: json");
  expect(found).toContain("speech.ts: typescript");
  expect(found).toContain("index_bg.wasm: wasm");
});

test.skipIf(!isPresent("magika==1.0.3"))("the last layer learns new file types, and keeps the others", () => {
  const all = printed("fine_tune_onnx", "30");
  const losses = all.flatMap((line) => /loss (\S+)$/.exec(line)?.slice(1) ?? []).map(Number);
  expect(losses.at(-1)!).toBeLessThan(losses[0] / 100);
  expect(all).toContain("new files: 20 of 20 right");
  expect(all.join()).toContain("package.json: json");
});
