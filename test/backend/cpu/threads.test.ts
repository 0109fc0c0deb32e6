import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { nativeTables } from "../../../src/backend/cpu/tables.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { compileOnce } from "../../support/compile_once.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";

/** Far longer than any test takes: a process that does not end is killed, and the test fails. */
const timeout = 300_000;

describe("threads of the cpu backend", () => {
  test("concurrent calls from several JavaScript threads are all correct", async () => {
    const workers = [1, 2, 3, 4].map((number) => {
      const worker = new Worker(join(packageRoot, "test/support/cpu-worker.ts"));
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      worker.onmessage = ({ data }: MessageEvent<number>) => resolve(data);
      worker.onerror = reject;
      worker.postMessage(number);
      return { worker, promise };
    });
    expect(await Promise.all(workers.map(({ promise }) => promise))).toEqual([0, 0, 0, 0]);
    for (const { worker } of workers) worker.terminate();
  });

  test.each(["", "process.exit(7);"])("a process ends normally while helper threads wait or spin: %p", (last) => {
    const program = `
      import { convertCall } from "./src/ops/copy/primitive.ts";
      const count = 1 << 20;
      const out = new Float64Array(count);
      const values = { from: "float32", to: "float64", fromOffset: 0, toOffset: 0, count };
      convertCall("test", values, [new Float32Array(count).fill(2), out]);
      console.log(out.every((value) => value === 2));
      ${last}`;
    const { exitCode, stdout, signalCode } = Bun.spawnSync([...bunWords, "-e", program], {
      cwd: packageRoot,
      env: { ...process.env, ORCHARD_CPU_THREADS: "8" },
      timeout: timeout,
    });
    expect([stdout.toString(), exitCode, signalCode ?? null]).toEqual(["true\n", last ? 7 : 0, null]);
  });

  test("each block of a task runs once, and is done when the call returns", async () => {
    const program = testFolder("parallel").file("parallel");
    const sources = [
      "test/support/parallel.cpp",
      ...["parallel", "processor"].map((n) => `native/cpu/runtime/${n}.cpp`),
    ];
    const paths = sources.map((path) => join(packageRoot, path));
    await compileOnce(["-std=c++17", "-O1", ...paths, "-pthread"], program);
    const { exitCode, stdout } = Bun.spawnSync([program], { timeout });
    expect([exitCode, stdout.toString()]).toEqual([0, "0\n"]);
  });

  test("a forked child starts its threads again", async () => {
    const program = testFolder("fork").file("fork");
    const header = join(packageRoot, "native/cpu/include");
    const source = join(packageRoot, "test/support/fork.cpp");
    await compileOnce(["-std=c++17", `-I${header}`, source, "-ldl", "-pthread"], program);
    const { functions, names } = nativeTables();
    const { float32, float64 } = names["DType"];
    const ordinals = [functions["convert"].ordinal, float32, float64].map(String);
    const { exitCode, stdout } = Bun.spawnSync([program, cpuLibrary().path, ...ordinals], { timeout });
    expect([exitCode, stdout.toString()]).toEqual([0, ""]);
  });
});
