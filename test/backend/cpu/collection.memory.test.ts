/** The garbage collector keeps up with unreachable blocks of the cpu backend. */
import { expect, test } from "bun:test";
import { cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { allocateBlock } from "../../../src/backend/cpu/memory.ts";
import { cpuStatistics } from "../../../src/backend/cpu/report.ts";

const { native } = cpuLibrary();
const megabyte = 2 ** 20;
const statistics = () => cpuStatistics(native);

test("unreachable buffers are collected in a loop that never waits", () => {
  const { liveBytes } = statistics();
  let largest = 0;
  for (let step = 0; step < 2000; step++) {
    new Float32Array(allocateBlock(native, 4 * megabyte, "test").buffer)[0] = step;
    largest = Math.max(largest, statistics().liveBytes);
  }
  expect(largest - liveBytes).toBeLessThan(2000 * megabyte); // of 8,000 allocated megabytes
});
