/** Tensors of all backends share a memory limit, beyond which a typed error is thrown and no other backend is tried. */
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { memoryLimit } from "../../src/core/limits.ts";
import {
  ArgumentError,
  expand,
  OutOfMemoryError,
  ones,
  setMemoryFraction,
  setMemoryLimit,
  type Tensor,
  zeros,
} from "../../src/index.ts";
import { memory, reclaimMemory } from "../../src/tensor/usage.ts";
import { tested } from "../ops/run.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { inGroup1, inGroup2, systemRoot } from "../support/system-root.ts";
import { combinations, expectLimit, filled, filler, MB, options } from "./filling.ts";

const folder = testFolder("memory-limit");

describe("a limit set in the environment", () => {
  test.each(combinations)("the limit applies on %s", (backends) => {
    const own = filled([...filler, backends, `${MB}`], { ORCHARD_MEMORY_LIMIT: `${100 * MB}` });
    expectLimit(own, 100 * MB, /^ORCHARD_MEMORY_LIMIT$/);
  });
});

describe.if(process.platform === "linux")("limits of the system", () => {
  test("limits of control groups apply, of either version", () => {
    const second = { ...inGroup2("/a/b"), "sys/fs/cgroup/a/memory.max": `${512 * MB}` };
    const roots = [systemRoot(folder, second)];
    roots.push(
      systemRoot(folder, { ...inGroup1("/a"), "sys/fs/cgroup/memory/a/memory.limit_in_bytes": `${512 * MB}` }),
    );
    for (const root of roots) {
      const own = filled([...filler, "cpu", `${4 * MB}`], { ORCHARD_SYSTEM_ROOT: root });
      expectLimit(own, 256 * MB, /^of 536870912 bytes: memory\.(max|limit_in_bytes) of the control group .*\/a$/);
    }
  });

  test.each(["v", "d"])("the limit of the process applies: ulimit -%s", (letter) => {
    const script = 'ulimit -S -$0 "$1" && shift && exec "$@"';
    // JavaScript reserves 6 GB or more of address space and uses little of it
    const kilobytes = `${(letter === "v" ? 14 : 9) * 2 ** 20}`;
    const own = filled(["sh", "-c", script, letter, kilobytes, ...filler, "cpu", `${64 * MB}`, "unwritten"], {});
    const [, allowed] = /tensors may take (\d+) /.exec(own.message) ?? [];
    expect(Number(allowed)).toBeLessThan(12 * 2 ** 30);
    expectLimit(own, Number(allowed), letter === "v" ? /RLIMIT_AS/ : /RLIMIT_DATA/);
  });
});

describe("a limit set by the program", () => {
  afterEach(() => setMemoryLimit(null));
  const { available } = memoryLimit();
  const refusal = (elements: number) => errorOf(() => withBackend("cpu", () => zeros([elements])));
  const fractionOf = (bytes: number) => (memory().host.liveBytes + bytes) / available;

  test("a limit applies from the next allocation on, in bytes and as a fraction of the memory", () => {
    const set = [
      [() => setMemoryLimit(memory().host.liveBytes + 16 * MB), /set by setMemoryLimit/],
      [() => setMemoryFraction(fractionOf(16 * MB)), /set by setMemoryFraction: 0\.\d+(e-\d+)? of \d+ bytes/],
    ] as const;
    for (const [limit, source] of set) {
      reclaimMemory(); // freed garbage of other tests must not make room
      limit();
      expect(withBackend("cpu", () => zeros([MB])).size).toBe(MB);
      const failure = refusal(8 * MB);
      expect(failure).toBeInstanceOf(OutOfMemoryError);
      expect((failure as Error).message).toMatch(source);
    }
  });

  test.each(tested)("a limit may be raised: %s follows", (backend) => {
    reclaimMemory(); // freed garbage of other tests must not make room
    const used = memory().host.liveBytes + memory().metal.liveBytes;
    setMemoryLimit(used + 8 * MB);
    expect(errorOf(() => withBackend(backend, () => zeros([4 * MB])))).toBeInstanceOf(OutOfMemoryError);
    setMemoryLimit(used + 64 * MB);
    expect(withBackend(backend, () => withStrict(true, () => zeros([4 * MB]))).size).toBe(4 * MB);
  });

  test("a limit ends with null", () => {
    setMemoryLimit(1);
    expect(refusal(MB)).toBeInstanceOf(OutOfMemoryError);
    setMemoryLimit(null);
    expect(withBackend("cpu", () => zeros([MB])).size).toBe(MB);
  });

  test.each([0, -1, 1.5, Number.NaN, Infinity, 2 ** 53, "1", undefined])("a limit can't be %p", (bytes) =>
    expect(errorOf(() => setMemoryLimit(bytes as number))).toBeInstanceOf(ArgumentError),
  );
  test.each([0, -0.5, 1.0001, Number.NaN, "1", null])("a limit can't be the fraction %p", (fraction) =>
    expect(errorOf(() => setMemoryFraction(fraction as number))).toBeInstanceOf(ArgumentError),
  );
  test.each([Number.MIN_VALUE, 1])("a limit may be the fraction %p", (fraction) => setMemoryFraction(fraction));
});

describe.each(tested)("allocations beyond the limit on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withBackend(backend, body);
  afterEach(() => setMemoryLimit(null));

  test("no other backend is tried, and live tensors stay", () => {
    const warn = spyOn(console, "warn").mockImplementation(() => undefined);
    const x = on(() => ones([MB / 4]));
    const live = () => memory().host.liveBytes + memory().metal.liveBytes;
    Bun.gc(true);
    const before = live();
    setMemoryLimit(before + 24 * MB);
    try {
      const operations = [() => zeros([16 * MB]), () => ones([8 * MB]), () => expand(x, [64, MB / 4]).contiguous()];
      for (const operation of operations) {
        const failure = errorOf(() => on(operation));
        expect(failure).toBeInstanceOf(OutOfMemoryError);
        expect((failure as OutOfMemoryError).code).toBe("memoryLimit");
        expect((failure as OutOfMemoryError).message).toContain(
          `tensors may take ${before + 24 * MB} (set by setMemoryLimit)`,
        );
      }
      expect(warn.mock.calls).toEqual([]);
      expect(live()).toBe(before);
      expect(on(() => x.sum().item())).toBe(MB / 4);
    } finally {
      warn.mockRestore();
      x.dispose();
    }
  });

  test("views take no memory, however large", () => {
    // Garbage of earlier tests that is not collected yet counts as well.
    setMemoryLimit(memory().host.liveBytes + memory().metal.liveBytes + 2 * process.memoryUsage().heapUsed + 64 * MB);
    const view = on(() =>
      expand(ones([1, 1]), [2 ** 26, 2 ** 26])
        .slice({ start: 5 })
        .transpose(0, 1),
    );
    expect(view.shape).toEqual([2 ** 26, 2 ** 26 - 5]);
  });
});

test.if(tested.includes("metal"))("a limit of metal alone leaves the host's memory to other backends", () => {
  const warn = spyOn(console, "warn").mockImplementation(() => undefined);
  const { memoryLimit } = metalContext().statistics();
  try {
    metalContext().configure("memory_limit", metalContext().statistics().liveBytes + MB);
    const x: Tensor = withBackend("metal", () => ones([4 * MB]));
    expect([x.storageMode, x.sum().item()]).toEqual(["host", 4 * MB]);
    expect(warn).toHaveBeenCalled();
  } finally {
    metalContext().configure("memory_limit", memoryLimit);
    warn.mockRestore();
  }
});

function errorOf(body: () => unknown): unknown {
  try {
    body();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("temporary memory of an operation is under the limit too, and the message states it", () => {
  const program = `
    import { withBackend } from "./src/backend/policy.ts";
    import { OutOfMemoryError, ones, sort } from "./src/index.ts";
    withBackend("cpu", () => {
      const x = ones([${MB}]);
      try { for (let size = 1; ; size++) sort(ones([size * ${MB}])).values.dispose(); }
      catch (error) { console.log(error instanceof OutOfMemoryError, error.code, error.message); }
    });`;
  const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program], options({ ORCHARD_MEMORY_LIMIT: "64000000" }));
  expect(stderr.toString()).toBe("");
  expect(stdout.toString()).toMatch(
    /^true memoryLimit \[sort\] .* bytes are refused: .* 64000000 \(ORCHARD_MEMORY_LIMIT\)\n$/,
  );
});
