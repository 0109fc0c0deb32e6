import { describe, expect, test } from "bun:test";
import { ArgumentError } from "../../src/core/errors.ts";
import { checkSettings, presetFor, presets, type Settings } from "../../src/train/settings.ts";

describe("settings", () => {
  test.each(Object.entries(presets))("of the recipe %s are valid", (_, preset) => {
    expect(checkSettings(preset)).toBe(preset);
  });

  const wrong: readonly (readonly [Partial<Settings>, string])[] = [
    [{ layers: 0 }, "expected layers to be a whole number of at least 1, got 0"],
    [{ batch: 1.5 }, "expected batch to be a whole number of at least 1, got 1.5"],
    [{ learningRate: 0 }, "expected learningRate to be a finite number above 0, got 0"],
    [{ learningRate: Number.NaN }, "expected learningRate to be a finite number above 0, got NaN"],
    [{ dropout: 1 }, "expected dropout to be at least 0 and below 1, got 1"],
    [{ width: 130 }, "expected width to be a multiple of heads, got 130 and 4"],
    [{ warmup: 2000 }, "expected warmup to be below the number of steps, 2000, got 2000"],
    [{ seed: -1 }, "expected seed to be a whole number of at least 0, got -1"],
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
