/**
 * The host side of the NVIDIA engine, against a stand-in for the driver that checks calls and runs nothing, and a
 * stand-in for the compiler. No GPU is needed.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { environmentFlag } from "../../../../src/core/environment.ts";
import { type Outcome, prepare, runOnStandin } from "./standin.ts";

const isTested = process.platform === "linux" && !environmentFlag("ORCHARD_SKIP_METAL");
const folder = mkdtempSync(join(tmpdir(), "orchard-gpu-"));
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  if (!isTested) return;
  await prepare(folder);
});

const runProgram = (program: string, variables: Record<string, string>, words: readonly string[] = []): Outcome =>
  runOnStandin(folder, program, variables, words);

const scalars = ["value", "buffer", "pointer"] as const;

const run = (variables: Record<string, string> = {}, count = 1000, steps = 3, scalar = "value"): Outcome =>
  runProgram("program.ts", variables, [`${count}`, `${steps}`, scalar]);

describe.skipIf(!isTested)("the host side of the NVIDIA engine", () => {
  test("buffers, bytes and grids of any size are sent, and memory stays alive while work uses it", () => {
    const sizes = [fc.integer({ min: 1, max: 300_000 }), fc.integer({ min: 1, max: 100 })] as const;
    fc.assert(
      fc.property(...sizes, fc.constantFrom(...scalars), (count, steps, scalar) => {
        const { results, log, errors } = run({}, count, steps, scalar);
        expect(log.filter((line) => line.startsWith("violation"))).toEqual([]);
        expect(errors).toBe("");
        const groups = Math.ceil(count / 64);
        const launches = log.filter((line) => line.startsWith("launch"));
        const wanted = Array.from({ length: steps }, (_, step) =>
          [
            `launch ${groups}x1x1 of 64x1x1, threads ${count} 1 1, shared 0, first 0 0 0`,
            "x 2",
            `scalar ${step + 0.5}`,
          ].join(", "),
        );
        expect(launches).toEqual([...wanted, ...wanted]); // with shared buffers, then with private ones
        // Launches contain values. A build that reads them at addresses is loaded when one is in a buffer.
        expect(log.filter((line) => line === "module")).toHaveLength(scalar === "buffer" ? 2 : 1);
        // The stand-in copies and fills, but runs no kernel: y keeps its zeros, and x what was written.
        const zeros = count > 1 ? [0, 0] : [0];
        expect(results).toEqual({ device: "Stand-in 0", shared: [...zeros, 2], private: [...zeros, 2] });
      }),
      {
        ...({ numRuns: 4, seed: 39 } as const),
        examples: scalars.map((scalar): [number, number, typeof scalar] => [100, 3, scalar]),
      },
    );
  });

  test("a kernel is loaded with fewer registers if a threadgroup is too large for its registers", () => {
    const loaded = (threads: string) =>
      run({ STANDIN_THREADS: threads }).log.filter((line) => line.startsWith("module") || line.startsWith("violation"));
    expect(loaded("64")).toEqual(["module"]); // threadgroups have 64 threads
    expect(loaded("63")).toEqual(["module", "module of 64 registers"]);
  });

  test("a number selects another GPU", () => {
    const { results, log } = run({ ORCHARD_METAL_DEVICE: "nvidia:1" });
    expect(results["device"]).toBe("Stand-in 1");
    expect(log).toContain("retain 1");
  });

  test("each rank of a machine uses the GPU with its index, unless one is named or only one is visible", () => {
    const launchers = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "SLURM_LOCALID"];
    for (const variable of launchers) expect(run({ [variable]: "1" }).results["device"]).toBe("Stand-in 1");
    const [variable = "", second = ""] = launchers;
    expect(run({ [variable]: "1", [second]: "0" }).results["device"]).toBe("Stand-in 1"); // Open MPI's comes first
    expect(run({ [variable]: "1", ORCHARD_METAL_DEVICE: "nvidia:0" }).results["device"]).toBe("Stand-in 0");
    expect(run({ [variable]: "2" }).errors).toContain("this process would take number 2");
    const chosen = { CUDA_VISIBLE_DEVICES: "3", STANDIN_GPUS: "1" };
    expect(run({ [variable]: "3", ...chosen }).results["device"]).toBe("Stand-in 0");
  });

  test("a missing GPU or driver is an error that says so", () => {
    expect(run({ ORCHARD_METAL_DEVICE: "nvidia:2" }).errors).toContain("there are 2 usable GPUs");
    expect(run({ ORCHARD_METAL_DEVICE: "amd" }).errors).toContain("expected software, nvidia or nvidia:<number>");
    expect(run({ ORCHARD_METAL_CUDA: join(folder, "none.so") }).errors).toContain("no NVIDIA driver was found");
    expect(run({ STANDIN_FAIL: "cuInit:100" }).errors).toContain("the NVIDIA driver does not start");
  });

  test("without a compiler, an error names the command that installs it", () => {
    const { errors } = run({
      ORCHARD_METAL_GPU_CLANG: join(folder, "none"),
      ORCHARD_METAL_CACHE: join(folder, "empty"),
    });
    expect(errors).toContain("gpu_clang");
  });

  test("a launch that the driver refuses is an error, after which further work is refused", () => {
    const { results, log } = run({ STANDIN_FAIL: "cuLaunchKernel:700" });
    expect(results["shared"]).toContain("CUDA_ERROR_ILLEGAL_ADDRESS");
    expect(String(results["private"])).toMatch(/^\w+Error: /); // no memory is allocated on a lost GPU
    expect(log.filter((line) => line.startsWith("violation"))).toEqual([]);
  });

  // As on a real GPU, the error appears when the work is waited for.
  const faults = [
    ["an access out of bounds", "kernel:700", "CUDA_ERROR_ILLEGAL_ADDRESS"],
    ["a loop that does not end", "kernel:600", "the work ran longer than 50 ms"],
    ["a device that was lost", "kernel:214", "CUDA_ERROR_OTHER"],
  ] as const;
  test.each(faults)("%s throws a typed error, and the process continues without the GPU", (_, fault, cause) => {
    const { results, log } = run({ STANDIN_FAIL: fault, ORCHARD_METAL_TIMEOUT_MS: "50" });
    expect(results["shared"]).toStartWith("BackendError: ");
    expect(results["shared"]).toContain(cause);
    expect(results["private"]).toMatch(/^\w+Error: /); // no memory is allocated on a lost GPU
    expect(log.filter((line) => line.startsWith("violation"))).toEqual([]);
  });

  test.each(faults)("after %s, operations on tensors are computed again on the cpu", (_, fault, cause) => {
    const variables = { STANDIN_ANY: "1", STANDIN_FAIL: fault, ORCHARD_METAL_TIMEOUT_MS: "50" };
    const { results, errors, log } = runProgram("tensors.ts", variables);
    expect(results).toEqual({ sum: [5, 7, 9], later: [20, 28, 36] });
    expect(errors).toContain(cause);
    expect(errors).toContain("recomputed on another backend");
    expect(log.filter((line) => line.startsWith("violation"))).toEqual([]);
  });
});
