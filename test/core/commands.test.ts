import { expect, test } from "bun:test";
import packageFile from "../../package.json";
import {
  blasCommand,
  dylibAdvice,
  dylibCommand,
  isClone,
  orchardCommand,
  swiftCommand,
} from "../../src/core/commands.ts";

test("in a clone, commands are its scripts; in a project, those of the installed package", () => {
  expect(isClone).toBe(true);
  const words = ["train --resume runs/a", "generate", "doctor", "tune"];
  expect(words.map((each) => orchardCommand(each, true))).toEqual([
    "bun run train --resume runs/a",
    "bun run generate",
    "bun run doctor",
    "bun src/cli/orchard.ts tune",
  ]);
  expect(words.map((each) => orchardCommand(each, false))).toEqual(words.map((each) => `bunx orchard ${each}`));
  for (const each of words.slice(0, 3)) expect(packageFile.scripts).toHaveProperty(each.split(" ")[0]);
});

test("an installed package never recommends a script", () => {
  const advice = [dylibCommand, dylibAdvice, swiftCommand, blasCommand];
  for (const each of advice) expect(each(false)).not.toContain("bun run");
  for (const each of [dylibCommand, dylibAdvice, blasCommand]) expect(each(true)).toContain("bun run");
  if (process.platform === "linux") expect(swiftCommand(false)).toBe("bunx orchard toolchain install");
});
