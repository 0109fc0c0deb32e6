/** Which backend runs a call: by code, by the environment, and if backends are missing. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { type Codepath, codepaths, resetCodepaths } from "../../src/backend/codepaths.ts";
import { forgetFailures } from "../../src/backend/failure.ts";
import { getBackend, isStrict, setBackend, setStrict, withBackend, withStrict } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { ArgumentError, BackendError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { add } from "../../src/ops/elementwise/arithmetic.ts";
import { exp } from "../../src/ops/elementwise/exponential.ts";
import { bunWords } from "../support/program.ts";

beforeEach(() => {
  setBackend("cpu");
  resetCodepaths();
});
afterEach(() => {
  setBackend("cpu");
  setStrict(false);
});

const wayOf = (body: () => unknown): string[] => {
  resetCodepaths();
  body();
  return codepaths().map(({ operation, backend, reason }) => `${operation}: ${backend} (${reason})`);
};
const x = tensor([1, 2]);

describe("the backend that is tried first", () => {
  test("setBackend applies to the process, withBackend to a body; the innermost wins", () => {
    setBackend("reference");
    expect(wayOf(() => exp(x))).toEqual(["exp: reference (preferred)"]);
    expect(wayOf(() => withBackend("cpu", () => exp(x)))).toEqual(["exp: cpu (preferred)"]);
    expect(withBackend("cpu", () => withBackend("reference", getBackend))).toBe("reference");
    expect(getBackend()).toBe("reference");
  });

  test("withBackend applies across awaits, only to that body, and ends if the body throws", async () => {
    const inside = withBackend("reference", async () => {
      await Bun.sleep(1);
      const first = getBackend();
      await Bun.sleep(1);
      return [first, getBackend()];
    });
    const beside = withBackend("cpu", async () => {
      await Bun.sleep(1);
      return getBackend();
    });
    expect(getBackend()).toBe("cpu");
    expect([await inside, await beside]).toEqual([["reference", "reference"], "cpu"]);
    await expect(withBackend("reference", () => Promise.reject(new Error("inside")))).rejects.toThrow("inside");
    expect(() =>
      withBackend("reference", () => {
        throw new Error("inside");
      }),
    ).toThrow("inside");
    expect(getBackend()).toBe("cpu");
  });

  test("the error for an unknown backend lists the existing backends", () => {
    expect(() => setBackend("gpu" as never)).toThrow(ArgumentError);
    expect(() => withBackend("gpu" as never, () => 1)).toThrow(
      '[withBackend] expected name to be a backend (metal, cpu, reference), got "gpu"',
    );
  });
});

describe("codepaths() counts calls", () => {
  test("calls are counted by operation, backend and reason, the most frequent first", () => {
    for (let call = 0; call < 3; call++) exp(x);
    withBackend("reference", () => exp(x));
    add(x, x);
    add(x, x);
    expect(codepaths()).toEqual([
      { operation: "exp", backend: "cpu", reason: "preferred", calls: 3 },
      { operation: "add", backend: "cpu", reason: "preferred", calls: 2 },
      { operation: "exp", backend: "reference", reason: "preferred", calls: 1 },
    ]);
    const before = codepaths();
    exp(x);
    expect(before[0].calls).toBe(3); // the rows are copies
    resetCodepaths();
    expect(codepaths()).toEqual([]);
  });

  test("the reason says why earlier backends did not run a call", () => {
    const wide = tensor([1], { dtype: "float64" });
    expect(wayOf(() => withBackend("metal", () => exp(wide)))).toEqual(["exp: cpu (metal: Metal has no float64)"]);
  });
});

describe("strict mode makes fallbacks errors", () => {
  const fallback = () => withBackend("metal", () => exp(tensor([1], { dtype: "float64" })));

  test("strict mode turns a fallback into an error that names the operation, the reason and what to do", () => {
    expect(fallback().item()).toBeCloseTo(Math.E, 12);
    setStrict(true);
    expect(fallback).toThrow(BackendError);
    expect(fallback).toThrow(
      "[exp] strict mode allows no fallback (metal: Metal has no float64). setStrict(false) allows fallbacks; " +
        "withBackend(…) chooses another backend.",
    );
    expect(withStrict(false, () => fallback().item())).toBeCloseTo(Math.E, 12);
    expect(isStrict()).toBe(true);
  });

  test("strict mode applies across awaits", async () => {
    const inside = withStrict(true, async () => {
      await Bun.sleep(1);
      return isStrict();
    });
    expect(isStrict()).toBe(false);
    expect(await inside).toBe(true);
  });
});

interface Outcome {
  readonly result: unknown;
  readonly ways: Codepath[];
}

/** The backend and output of a separate process with some settings. */
function compute(environment: Record<string, string>, body = "exp(tensor([1, 2])).toArray()") {
  const program = `
    import { tensor, exp, mul, codepaths } from "./src/index.ts";
    const result = ${body};
    console.log(JSON.stringify({ result, ways: codepaths() }));`;
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "-e", program], {
    cwd: packageRoot,
    env: { ...process.env, ...environment },
  });
  const said = stderr.toString().trim();
  return { outcome: exitCode === 0 ? (JSON.parse(stdout.toString()) as Outcome) : undefined, said };
}

const nowhere = { ORCHARD_LIBRARY: "/nowhere/metal", ORCHARD_CPU_LIBRARY: "/nowhere/cpu" };
const e = expect.closeTo(Math.E, 5);
const square = expect.closeTo(Math.E ** 2, 5);

describe("environment variables select a backend", () => {
  const built = environmentFlag("ORCHARD_SKIP_METAL") ? ["cpu", "reference"] : ["metal", "cpu", "reference"];
  test.each(built)("ORCHARD_BACKEND=%s selects the backend", (name) => {
    const { outcome, said } = compute({ ORCHARD_BACKEND: name });
    expect([said, outcome?.result]).toEqual(["", [e, square]]);
    expect(outcome?.ways.map(({ backend }) => backend)).toEqual([name as never]);
  });

  test("ORCHARD_DEBUG=1 prints each operation, its backend and why", () => {
    const { said } = compute(
      { ORCHARD_DEBUG: "1", ORCHARD_BACKEND: "metal", ...nowhere },
      "exp(mul(tensor([1, 2]), 2)).toArray()",
    );
    const missing =
      "metal: ORCHARD_LIBRARY names /nowhere/metal, which does not exist; " +
      "cpu: ORCHARD_CPU_LIBRARY names /nowhere/cpu, which does not exist";
    expect(said.split("\n").filter((line) => !line.includes("is unavailable"))).toEqual([
      `[orchard] mul: reference (${missing})`,
      `[orchard] exp: reference (${missing})`,
    ]);
  });

  test("ORCHARD_STRICT=1 makes a missing backend an error", () => {
    const { outcome, said } = compute({ ORCHARD_STRICT: "1", ORCHARD_BACKEND: "cpu", ...nowhere });
    expect(outcome).toBeUndefined();
    expect(said).toContain(
      "BackendError: [tensor] strict mode allows no fallback (cpu: ORCHARD_CPU_LIBRARY names /nowhere/cpu, which " +
        "does not exist).",
    );
  });

  test("the error for an invalid value names the variable and the value", () => {
    expect(compute({ ORCHARD_BACKEND: "gpu" }).said).toContain(
      'ArgumentError: [ORCHARD_BACKEND] expected a backend (metal, cpu, reference), got "gpu"',
    );
    expect(compute({ ORCHARD_STRICT: "yes" }).said).toContain(
      'ArgumentError: [environment] expected ORCHARD_STRICT to be 0 or 1, got "yes"',
    );
  });
});

describe("without any dylib the package still works", () => {
  test("reference is used, with one warning for all calls", () => {
    const { outcome, said } = compute(
      { ORCHARD_BACKEND: "cpu", ...nowhere },
      "[1, 2, 3].map(() => exp(tensor([1, 2])).toArray())",
    );
    expect(outcome?.result).toEqual([
      [e, square],
      [e, square],
      [e, square],
    ]);
    expect(outcome?.ways).toEqual([
      {
        operation: "exp",
        backend: "reference",
        reason: "cpu: ORCHARD_CPU_LIBRARY names /nowhere/cpu, which does not exist",
        calls: 3,
      },
    ]);
    expect(said).toBe("[orchard] cpu is unavailable: ORCHARD_CPU_LIBRARY names /nowhere/cpu, which does not exist");
  });

  test("a file that is not a library is skipped with the loader's reason", () => {
    const { outcome, said } = compute({ ORCHARD_BACKEND: "cpu", ORCHARD_CPU_LIBRARY: `${packageRoot}/package.json` });
    expect(outcome?.ways[0]?.backend).toBe("reference");
    expect(said).toMatch(/^\[orchard\] cpu is unavailable: .*package\.json can't be used: .*$/);
  });
});

describe("a warning names a backend that a call skips", () => {
  test("a missing dtype alone causes no warning", () => {
    forgetFailures();
    const warn = spyOn(console, "warn").mockImplementation(() => undefined);
    withBackend("metal", () => exp(tensor([1], { dtype: "float64" })));
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });
});
