/** The memory limit of a control group limits tensors, and no process in it is killed. */
import { describe, expect, test } from "bun:test";
import { mayMakeGroups, spawnInGroup } from "../support/real-group.ts";
import { combinations, expectLimit, filler, MB, options, parsed } from "./filling.ts";

const limits = {
  1: { "memory.limit_in_bytes": `${512 * MB}` },
  2: { "memory.max": `${512 * MB}`, "memory.swap.max": "0" },
};
describe.if(process.platform === "linux" && mayMakeGroups("memory", limits))(
  "the limit of a real control group, in which nothing is killed",
  () => {
    test.each(combinations)("large tensors on %s stay within the limit", (backends) => {
      const own = parsed(spawnInGroup("memory", limits, [...filler, backends, `${MB}`], options({}))!);
      expectLimit(own, 256 * MB, /^of 536870912 bytes: memory\./);
    });

    test.each(["cpu", "reference"])("small tensors on %s, in JavaScript's memory, stay within the limit", (backend) => {
      const own = parsed(spawnInGroup("memory", limits, [...filler, backend, `${32 << 10}`], options({}))!);
      expect(own).toMatchObject({ name: "OutOfMemoryError", code: "memoryLimit", after: [2 ** 18] });
      expect(own.made).toBeGreaterThan(200 * MB);
    });
  },
);
