/** Results that are independent of threads, workers and their order. */
import { expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { tested } from "./run.ts";

/**
 * Tests that `compute`, whose results are compared by their bytes, gives the same on any number of threads and with any
 * workers in any order. It receives the backend: on metal, whose software device is slow, smaller tensors suffice,
 * since threadgroups are smaller than the blocks of work of the cpu's threads.
 */
export function testSameBits(compute: (backend: "cpu" | "metal") => readonly unknown[]): void {
  test("on cpu, with any number of threads", () => {
    const { native } = cpuLibrary();
    const first = withBackend("cpu", () => compute("cpu"));
    for (const threads of [1, 2, 3]) {
      configure(native, "threads", String(threads));
      expect(withBackend("cpu", () => compute("cpu"))).toEqual(first);
    }
    configure(native, "threads", "auto");
  });

  test.if(tested.includes("metal") && metalContext().isSoftware)("on metal, by any workers, in any order", () => {
    const context = metalContext();
    const on = () => withStrict(true, () => withBackend("metal", () => compute("metal")));
    const { workers, seed } = context.report().settings!;
    const first = on();
    context.configure("workers", 1);
    context.configure("seed", seed + 1);
    expect(on()).toEqual(first);
    context.configure("workers", workers);
    context.configure("seed", seed);
  });
}
