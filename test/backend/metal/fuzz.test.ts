import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { declarations } from "../../../src/backend/metal/abi.ts";
import { withoutAnnouncement } from "../../support/child.ts";
import { bunWords } from "../../support/program.ts";
import { repeats } from "../../support/repeats.ts";

/** The program's output: the status of close, the buffers left before it, and how often each status was returned. */
interface Answers {
  closed: number;
  live: number;
  total: Record<string, number>;
}

const root = join(import.meta.dir, "..", "..", "..");

const calls = repeats({ usual: 3000, all: 20_000 });

describe(`${calls} random calls from two threads`, () => {
  test.each([1, 20261])(
    "seed %p: nothing crashes or leaks, every call returns a status, and every function is called",
    async (seed) => {
      const child = Bun.spawn([...bunWords, "test/support/random-calls.ts", String(seed), String(calls), "2"], {
        cwd: root,
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, err, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      expect([code, withoutAnnouncement(err).trim()]).toEqual([0, ""]);
      const { closed, live, total } = JSON.parse(out) as Answers;
      expect([closed, live]).toEqual([0, 0]);
      expect(Object.values(total).reduce((sum, times) => sum + times, 0)).toBe(calls);
      const reached = new Set(Object.keys(total).map((key) => key.split(" ")[0]));
      const spared = [
        "orchard_abi_version",
        "orchard_capture_begin",
        "orchard_configure",
        "orchard_close",
        "orchard_open",
      ];
      expect([...reached].sort()).toEqual(
        Object.keys(declarations)
          .filter((name) => !spared.includes(name))
          .sort() as never,
      );
      for (const name of [
        "orchard_buffer_create",
        "orchard_tensor_create",
        "orchard_library_create",
        "orchard_pipeline_create",
        "orchard_dispatch_encode",
        "orchard_dispatches_encode",
        "orchard_buffer_copy",
      ]) {
        expect([name, (total[`${name} ok`] ?? 0) > 0]).toEqual([name, true]);
      }
    },
  );
});
