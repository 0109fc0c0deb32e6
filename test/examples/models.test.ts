/** The examples with a language model, on a small random one. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { folderOf } from "../nn/tasks/models.ts";
import { writeModel } from "../serve/folder.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const { path: folder } = testFolder("examples");
const lines = (name: string, input = "", words: readonly string[] = [folder]): string[] => {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, `examples/${name}.ts`, ...words], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
    stdin: Buffer.from(input),
  });
  expect([stderr.toString(), exitCode]).toEqual(["", 0]);
  return stdout.toString().trimEnd().split("\n");
};

beforeAll(() => writeModel(folder));

test("a chat replies to a line", () => {
  expect(lines("chat", "the in\n").join("").length).toBeGreaterThan(10);
});

test("a search sorts sentences by their cosines", () => {
  const cosines = lines("search").map((line) => Number.parseFloat(line));
  expect(cosines).toHaveLength(4);
  expect(cosines).toEqual(cosines.toSorted((a, b) => b - a));
  for (const cosine of cosines) expect(Math.abs(cosine)).toBeLessThanOrEqual(1);
});

test("sentences are ranked by their cosines with a question, and drawn", async () => {
  const [encoder, picture] = [join(folder, "encoder"), join(folder, "sentences.png")];
  await folderOf(encoder, "classify", { isBare: true });
  const printed = lines("sentences", "", [picture, "Who?", encoder]);
  const cosines = printed.slice(0, 20).map((line) => Number.parseFloat(line));
  expect(cosines).toEqual(cosines.toSorted((a, b) => b - a));
  expect(printed.slice(20)).toEqual([`wrote ${picture}`]);
  const png = await Bun.file(picture).bytes();
  expect([String.fromCharCode(...png.subarray(1, 4)), png.length > 10_000]).toEqual(["PNG", true]);
});

test("an agent calls tools, whose results are right", () => {
  const calls = lines("agent").flatMap((line) => /^(add|multiply)\((-?\d+), (-?\d+)\) = (-?\d+)$/.exec(line) ?? []);
  expect(calls.length).toBeGreaterThan(0);
  for (let at = 0; at < calls.length; at += 5) {
    const [x, y, result] = calls.slice(at + 2, at + 5).map(Number) as [number, number, number];
    expect(result).toBe(calls[at + 1] === "add" ? x + y : x * y);
  }
});

test("a fine-tuned model gives the answers that it was trained on, and saves an adapter", async () => {
  const printed = lines("fine-tune");
  const losses = printed.flatMap((line) => /^step \d+: loss (\S+)$/.exec(line)?.slice(1) ?? []).map(Number);
  expect(losses).toHaveLength(6);
  expect(losses.at(-1)!).toBeLessThan(losses[0] / 10);
  expect(printed.slice(6)).toEqual([
    "Who are you? A small model.",
    "Where do you live? In a file.",
    "What is 2 + 2? 4, I think.",
  ]);
  const config = await Bun.file(join(folder, "adapter", "adapter_config.json")).json();
  expect(config).toMatchObject({ peft_type: "LORA", r: 8 });
});
