import { describe, expect, test } from "bun:test";
import { ArgumentError } from "../../src/core/errors.ts";
import { checkSettings, presetFor, presets, type Settings, settingsOf } from "../../src/train/settings.ts";

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
    [{ prompt: "" }, "expected prompt, the start of samples, to have at least one character"],
    [{ seed: -1 }, "expected seed to be a whole number of at least 0, got -1"],
  ];
  test.each(wrong)("%p are refused", (settings, sentence) => {
    expect(() => checkSettings({ ...presets.cpu, ...settings })).toThrow(ArgumentError);
    expect(() => checkSettings({ ...presets.cpu, ...settings })).toThrow(sentence);
  });
});

describe("a warmup", () => {
  test.each(Object.keys(presets) as (keyof typeof presets)[])("of the recipe %s adapts to few steps", (name) => {
    for (const steps of [1, 2, 5, 50]) {
      const settings = checkSettings(settingsOf({ steps }, presets[name]));
      expect(settings.warmup).toBe(presets[name].warmup < steps ? presets[name].warmup : Math.floor(steps / 2));
    }
  });

  test("that is named is kept, and is an error where it is too long", () => {
    expect(settingsOf({ steps: 5, warmup: 4 }, presets.cpu).warmup).toBe(4);
    expect(settingsOf({ steps: 200 }, { ...presets.cpu, warmup: 150 }).warmup).toBe(150);
    expect(() => checkSettings(settingsOf({ steps: 5, warmup: 5 }, presets.cpu))).toThrow(
      "expected warmup to be below the number of steps, 5, got 5",
    );
  });

  test("adapts to no number of steps that is none: that is the error", () => {
    expect(() => checkSettings(settingsOf({ steps: 0 }, presets.cpu))).toThrow("expected steps to be");
  });
});

test("a machine's recipe is that of its backend", () => {
  const gpu = process.platform === "darwin" ? "gpu" : "tiny";
  expect(["cpu", "reference", "metal"].map(presetFor)).toEqual(["cpu", "tiny", gpu]);
});
