import { describe, expect, test } from "bun:test";
import { ArgumentError } from "../../src/core/errors.ts";
import { checkSettings, presetFor, presets, type Settings } from "../../src/train/settings.ts";

describe("settings", () => {
  test.each(Object.entries(presets))("of the recipe %s are valid", (_, preset) => {
    expect(checkSettings(preset)).toBe(preset);
  });

  const wrong: readonly (readonly [Partial<Settings>, string])[] = [
    [{ layers: 0 }, "layers is a whole number from 1 on, 0 came"],
    [{ batch: 1.5 }, "batch is a whole number from 1 on, 1.5 came"],
    [{ learningRate: 0 }, "learningRate is a finite number above 0, 0 came"],
    [{ learningRate: Number.NaN }, "learningRate is a finite number above 0, NaN came"],
    [{ dropout: 1 }, "dropout is at least 0 and below 1, 1 came"],
    [{ width: 130 }, "width is a multiple of heads; 130 is none of 4"],
    [{ warmup: 2000 }, "warmup ends before the last of 2000 steps, 2000 came"],
    [{ seed: -1 }, "seed is a whole number from 0 on, -1 came"],
  ];
  test.each(wrong)("%p are refused", (settings, sentence) => {
    expect(() => checkSettings({ ...presets.cpu, ...settings })).toThrow(ArgumentError);
    expect(() => checkSettings({ ...presets.cpu, ...settings })).toThrow(sentence);
  });
});

test("a machine's recipe is that of its backend", () => {
  const gpu = process.platform === "darwin" ? "gpu" : "tiny";
  expect(["cpu", "reference", "metal"].map(presetFor)).toEqual(["cpu", "tiny", gpu]);
});
