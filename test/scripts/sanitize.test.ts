/** `bun run check:sanitize`: recorded calls are replayed with faults, each of which exactly one sanitizer must find. */
import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { setsOf } from "../../scripts/cpu/objects.ts";
import { setsSource } from "../../scripts/cpu/sets.ts";
import { libraryFlags, programWords, type Replayer } from "../../scripts/sanitize/build.ts";
import { recordedFiles } from "../../scripts/sanitize/record.ts";
import { type Job, type Replayed, replay } from "../../scripts/sanitize/replay.ts";
import { settingsOf, summarize } from "../../scripts/sanitize/sanitize.ts";
import {
  environmentOn,
  findInstrumented,
  type Instrumented,
  type Sanitizer,
  sanitizers,
} from "../../scripts/sanitize/sanitizers.ts";
import { Status } from "../../src/backend/cpu/abi.ts";
import type { Native } from "../../src/backend/cpu/loader.ts";
import { recordCalls } from "../../src/backend/cpu/record.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { compileOnce } from "../support/compile_once.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("sanitize");

/** The functions of test/support/faults.cpp. */
const functions = [
  { name: "sum", blockBytes: 8, operands: 1 },
  { name: "placed", blockBytes: 24, operands: 2 },
  ...["readOneTooMany", "readOneBefore", "writeBehindScratch", "overflow", "race"].map((name) => ({
    name,
    blockBytes: 8,
    operands: 1,
  })),
];

/** A dylib of these functions, which only return a given status for each call. */
function describedNative(status: () => number): Native {
  const text = new TextEncoder().encode(JSON.stringify({ functions, names: {} }));
  const tables = (buffer: Uint8Array) => {
    buffer.set(text);
    return text.length;
  };
  return { orchard_cpu_tables: tables, orchard_cpu_run3: status } as unknown as Native;
}

interface Call {
  readonly name: string;
  readonly block: readonly number[];
  readonly operands: readonly NodeJS.TypedArray[];
  readonly status?: number;
}

/** Records calls as the library does, and returns the files. A call without operands has its block. */
function record(name: string, calls: readonly Call[]): string[] {
  let status = 0;
  const native = recordCalls(
    describedNative(() => status),
    folder.file(name),
  );
  const run3 = native.orchard_cpu_run3 as unknown as (...values: readonly unknown[]) => number;
  for (const call of calls) {
    const block = new Float64Array(call.block);
    const [a = block, b = block, c = block] = call.operands;
    status = call.status ?? Status.ok;
    const ordinal = functions.findIndex((own) => own.name === call.name);
    expect(run3(ordinal, block, a, b, c)).toBe(status);
  }
  return recordedFiles(folder.file(name));
}

const bytes = (count: number) => new Uint8Array(count).map((_, at) => at + 1);
const fault = (name: string, count = 40): Call => ({ name, block: [count], operands: [bytes(count)] });

const built = new Map<Sanitizer, Replayer & Instrumented>();
const [address, thread] = sanitizers as [Sanitizer, Sanitizer];

beforeAll(async () => {
  for (const sanitizer of sanitizers) {
    const instrumented = await findInstrumented(sanitizer);
    const library = folder.file(`faults-${sanitizer.name}.so`);
    const { compiler } = instrumented;
    const sets = folder.file("sets.cpp"); // lists all instruction sets, as in a full build
    const all = setsOf(compiler);
    const native = join(packageRoot, "native", "cpu");
    await Bun.write(
      sets,
      setsSource(
        native,
        all,
        all.map(({ name }) => name),
      ),
    );
    const sources = [
      sets,
      join(packageRoot, "test/support/faults.cpp"),
      ...new Bun.Glob("native/cpu/runtime/*.cpp").scanSync({ cwd: packageRoot, absolute: true }),
    ];
    const flags = ["-std=c++17", "-fPIC", ...sanitizer.flags, ...libraryFlags];
    await compileOnce([...sources, ...flags], library, compiler);
    const program = folder.file(`replay-${sanitizer.name}`);
    await compileOnce(programWords(sanitizer), program, compiler);
    built.set(sanitizer, { ...instrumented, library, program });
  }
});

const settings = { isa: "auto", threads: 4, callers: 1, blas: "none" };

function jobOf(sanitizer: Sanitizer, files: readonly string[], callers = 1): Job {
  const { library, program, launcher } = built.get(sanitizer)!;
  const state = folder.file(`state-${sanitizer.name}`);
  return { sanitizer, library, program, launcher, files, state, settings: { ...settings, callers } };
}

const run = (sanitizer: Sanitizer, name: string, calls: readonly Call[], callers?: number): Promise<Replayed> =>
  replay(jobOf(sanitizer, record(name, calls), callers));

describe("the replay finds faults in recorded calls", () => {
  test("calls without a fault have no finding; functions without a record are named", async () => {
    for (const sanitizer of sanitizers) {
      const { calls, tooLarge, notRecorded, findings } = await run(sanitizer, `right-${sanitizer.name}`, [
        fault("sum"),
        fault("sum", 41),
      ]);
      expect({ calls, tooLarge, findings }).toEqual({ calls: 2, tooLarge: 0, findings: [] });
      const missing = functions.map(({ name }) => name).filter((name) => name !== "sum");
      expect(notRecorded.toSorted()).toEqual(missing.toSorted());
    }
  });

  test("operands keep their positions: repeated operands share one place, alignment modulo 64 is kept", async () => {
    const shared = new Uint8Array(new ArrayBuffer(100), 3, 40).map((_, at) => at + 1);
    const own = new Uint8Array(new ArrayBuffer(100), 3, 40);
    own.set(shared);
    const { ptr } = await import("bun:ffi");
    const call = { name: "placed", block: [40, ptr(own) % 64, 256], operands: [own, own] };
    const replayed = await run(address, "placed", [call]);
    expect(replayed.findings).toEqual([]);
    const elsewhere = await run(address, "apart", [{ ...call, operands: [own, own.slice()] }]);
    expect(elsewhere.findings).toEqual([
      {
        calls: ["0 (placed)"],
        report: `expected the status 0, got ${Status.invalidArgument}: the operands are not placed as they were`,
      },
    ]);
  });

  test("a call that was rejected is rejected again", async () => {
    const refused = { name: "placed", block: [2, 0, 256], operands: [new Uint8Array(2), new Uint8Array(2)] };
    const { findings } = await run(address, "refused", [{ ...refused, status: Status.invalidArgument }]);
    expect(findings).toEqual([]);
  });

  test("of calls that differ only in contents, one is recorded; calls that lacked memory are not", async () => {
    const other = { ...fault("sum"), operands: [new Uint8Array(40)] };
    const full = { ...fault("sum", 7), status: Status.outOfMemory };
    const { calls } = await run(address, "once", [fault("sum"), other, full, fault("sum", 3)]);
    expect(calls).toBe(2);
  });

  test("the first bytes of a large operand are recorded and repeated", async () => {
    const [count, period] = [2 ** 12 + 1000, 2 ** 8];
    const large = new Uint8Array(count).map((_, at) => (at % period) + 1);
    const { ptr } = await import("bun:ffi");
    const files = record("large", [
      { name: "placed", block: [count, ptr(large) % 64, period], operands: [large, large] },
    ]);
    expect(Bun.file(files[0]).size).toBeLessThan(2 ** 12 + 200);
    const { findings, calls } = await replay(jobOf(address, files));
    expect([calls, findings]).toEqual([1, []]);
  });

  test("a call that is too large is counted", async () => {
    const huge = { name: "sum", block: [1], operands: [new Uint8Array(2 ** 28 + 1)] };
    const { findings, tooLarge } = await run(address, "too-large", [fault("sum"), huge]);
    expect([tooLarge, findings]).toEqual([1, []]);
  });
});

describe("sanitizers find each mistake", () => {
  test.each([
    ["readOneTooMany", "heap-buffer-overflow"],
    ["readOneBefore", "use-after-poison|heap-buffer-overflow"],
    ["writeBehindScratch", "use-after-poison"],
    ["overflow", "signed integer overflow"],
  ])("AddressSanitizer and UndefinedBehaviorSanitizer find %s", async (name, kind) => {
    const { calls, findings } = await run(address, name, [fault("sum"), fault(name), fault("sum", 3)]);
    expect(findings.map((finding) => finding.calls)).toEqual([[`1 (${name})`]]);
    expect(findings[0].report).toMatch(new RegExp(kind));
    expect(findings[0].report).toContain("faults.cpp");
    expect(calls).toBe(2);
  });

  test.each([1, 4])("ThreadSanitizer finds a race, with %d callers", async (callers) => {
    const { findings } = await run(thread, `race-${callers}`, [fault("sum"), fault("race", 64)], callers);
    expect(findings).toHaveLength(1);
    expect(findings[0].calls).toContain("1 (race)");
    expect(findings[0].report).toContain("data race");
  });

  test("a call with an unexpected status is found, and the sanitizer's report of a later one", async () => {
    const refused = { ...fault("sum", 5), status: Status.invalidArgument };
    const { findings } = await run(address, "both", [refused, fault("overflow")]);
    expect(findings.map((finding) => finding.calls[0])).toEqual(["0 (sum)", "1 (overflow)"]);
    expect(findings[0].report).toBe(`expected the status ${Status.invalidArgument}, got 0`);
    expect(findings[1].report).toMatch(/^[^\n]*signed integer overflow/);
  });

  test("each of several faults is found, up to the last call", async () => {
    const calls = [fault("overflow"), fault("readOneTooMany"), fault("sum"), fault("overflow", 2)];
    const { findings } = await run(address, "several", calls);
    expect(findings.map((finding) => finding.calls[0])).toEqual(["0 (overflow)", "1 (readOneTooMany)", "3 (overflow)"]);
  });
});

describe("the command replays every instruction set", () => {
  test("every instruction set is replayed under both sanitizers, and one with several callers", () => {
    const isas = ["baseline", "avx2"];
    expect(settingsOf(address, isas)).toEqual([
      { isa: "baseline", threads: 4, callers: 1, blas: "none" },
      { isa: "avx2", threads: 4, callers: 1, blas: "none" },
    ]);
    expect(settingsOf(thread, isas).map(({ isa, callers }) => [isa, callers])).toEqual([
      ["baseline", 1],
      ["avx2", 1],
      ["avx2", 4],
    ]);
  });

  test("uses after a return are checked with vectors of at most 32 bytes", () => {
    const found = (isa: string) => environmentOn(address, isa)["ASAN_OPTIONS"].match(/use_after_return=(\d)$/)?.[1];
    expect(["baseline", "avx2", "avx512", "avx512_bf16", "amx"].map(found)).toEqual([
      undefined,
      undefined,
      "0",
      "0",
      "0",
    ]);
    expect(environmentOn(address, "avx2")["ASAN_OPTIONS"]).toContain("detect_stack_use_after_return=1");
    expect(environmentOn(thread, "avx512")).toEqual(thread.environment);
  });

  test("a finding fails with its record and the command that repeats it; a function without a record fails too", () => {
    const job = { ...jobOf(address, ["some.calls"]) };
    const replayed = { calls: 3, tooLarge: 1, notRecorded: [], findings: [] };
    expect(summarize([{ job, replayed, seconds: 1 }], [])).toEqual({
      text:
        "  address  isa=auto threads=4 callers=1 blas=none: 3 calls, 1 too large to replay, 0 findings (1.0 s)\n" +
        "1 replays, 0 findings, 0 functions not recorded",
      failed: 0,
    });
    const findings = [{ calls: ["7 (gather)"], report: "heap-buffer-overflow" }];
    const { text, failed } = summarize([{ job, replayed: { ...replayed, findings }, seconds: 1 }], ["sort"]);
    expect(failed).toBe(2);
    expect(text).toContain("Record 7 (gather), isa=auto threads=4 callers=1 blas=none:\nheap-buffer-overflow\nagain: ");
    expect(text).toContain("first=7 some.calls\n");
    expect(text).toContain("expected the tests to call sort, got no record of it\n");
  });
});
