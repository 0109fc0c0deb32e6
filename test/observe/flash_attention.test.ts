/** `ORCHARD_DEBUG_FLASH_ATN`: the log lines and counts of attention's passes. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { child, hasMetal, newFolder, record, recordsIn } from "../support/recorded.ts";

const on = { ORCHARD_DEBUG_FLASH_ATN: "1" };
const nowhere = { ORCHARD_LIBRARY: "/nowhere/metal" };
const COUNTS = "flashattn_kernel_calls.log";

/** Lines without the times of passes, which must be numbers. */
const untimed = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replace(/, \d+\.\d{3} ms/, ", … ms").replace("[orchard] flashAttention ", ""));

const shapes = "q [1, 2, 16, 8], k [1, 2, 16, 8], v [1, 2, 16, 8]";
const rowShapes = "logSumExp [1, 2, 16], logSumExpLow [1, 2, 16]";
const backwardShapes = `${shapes}, out [1, 2, 16, 8], ${rowShapes}, gradOut [1, 2, 16, 8]`;
const step = "const [q, k, v] = operands(); backward(sum(flashAttention(q, k, v, { causal: true })));";

interface Counts {
  readonly pid: number;
  readonly forward: number;
  readonly backward: number;
}

const countsIn = (folder: string): Counts[] =>
  readFileSync(join(folder, COUNTS), "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const found = /^\d{4}-\d\d-\d\dT[\d:.]+Z pid (\d+) thread \d+ forward (\d{12}) backward (\d{12})$/.exec(line);
      expect([line, found !== null]).toEqual([line, true]);
      const [pid, forward, backward] = found!.slice(1).map(Number) as [number, number, number];
      return { pid, forward, backward };
    });

describe("the log of attention passes", () => {
  test.each(["ORCHARD_DEBUG_FLASH_ATN", "ORCHARD_DEBUG_FLASHATN"])("fused passes are logged under %s=1", (name) => {
    const { lines, folder } = record(step, { [name]: "1" });
    expect(untimed(lines)).toEqual([
      `forward: path fused on cpu (preferred), float32, ${shapes}; copies 0, … ms`,
      `backward: path fused on cpu (preferred), float32, ${backwardShapes}; copies 0, … ms`,
    ]);
    expect(countsIn(folder)).toEqual([expect.objectContaining({ forward: 1, backward: 1 })]);
  });

  test("the log says why earlier backends did not run a pass", () => {
    const { lines } = record(step, { ...on, ...nowhere, ORCHARD_BACKEND: "metal" });
    const [warning, ...logged] = untimed(lines);
    expect(warning).toContain("metal is unavailable");
    expect(logged[0]).toStartWith(
      "forward: path fused on cpu (metal: ORCHARD_LIBRARY names /nowhere/metal, which does not exist), float32, ",
    );
  });

  test("each unfused pass is logged once, with the operands of the forward pass", () => {
    const { lines, folder } = record(
      `const [q, k, v] = operands();
      const loss = sum(flashAttention(q, k, v, { path: "unfused" }));
      backward(loss, undefined, { retainGraph: true });
      backward(loss);
      orchard.grad(sum(flashAttention(q, k, v, { path: "unfused" })), [k]);
      flashAttention(q.detach(), k.detach(), v.detach(), { path: "unfused" });
      const wide = randn([1, 1, 2, 300]);
      flashAttention(wide, wide, wide);`,
      on,
    );
    const logged = (pass: string) => `${pass}: path unfused (as requested), float32, ${shapes}; copies 0, … ms`;
    const wide = "q [1, 1, 2, 300], k [1, 1, 2, 300], v [1, 1, 2, 300]";
    expect(untimed(lines).sort()).toEqual([
      ...Array.from({ length: 3 }, () => logged("backward")),
      ...Array.from({ length: 3 }, () => logged("forward")),
      `forward: path unfused (dim or valueDim over 256), float32, ${wide}; copies 0, … ms`,
    ]);
    expect(recordsIn(folder)).toEqual([]); // no kernel of attention was called
  });

  test("unfused backward passes that do not reach every operand are logged once each", () => {
    const { lines } = record(
      `const [q, k, v] = operands();
      const { logSumExp } = flashAttention(q, k, v, { path: "unfused", returnLogSumExp: true });
      backward(sum(logSumExp), undefined, { retainGraph: true });
      backward(sum(logSumExp)); // v has no influence on it`,
      on,
    );
    expect(untimed(lines).map((line) => line.split(":")[0])).toEqual(["forward", "backward", "backward"]);
  });

  test("logging changes no result and no gradient, fused or unfused", () => {
    const program = `orchard.manualSeed(7);
      for (const path of ["fused", "unfused"]) {
        const leaves = operands();
        const { out, logSumExp } = flashAttention(...leaves, { path, dropout: 0.2, returnLogSumExp: true });
        backward(sum(orchard.add(sum(out), sum(logSumExp))));
        console.log(JSON.stringify([out, logSumExp, ...leaves.map(({ grad }) => grad)].map((x) => x.toArray())));
      }`;
    const silent = record(program, {});
    const logged = record(program, on);
    expect([silent.exitCode, logged.lines.length]).toEqual([0, 4]);
    expect(silent.printed.length).toBeGreaterThan(10_000);
    expect(logged.printed).toBe(silent.printed);
  });

  test("nothing is written to any file if the log is off", () => {
    const { lines, folder, exitCode } = record(step, { ORCHARD_DEBUG_FLASH_ATN: "0" });
    expect([exitCode, lines, recordsIn(folder)]).toEqual([0, [], []]);
  });
});

describe.if(hasMetal)("the log on metal lists copies", () => {
  test("copies of operands in the host's memory are logged once", () => {
    const { lines } = record(
      `const [q, k, v] = [0, 1, 2].map(() => orchard.reshape(tensor(new Float32Array(128)), [1, 1, 16, 8]));
      withBackend("metal", () => [flashAttention(q, k, v), flashAttention(q, k, v), flashAttention(q, q, q)]);`,
      on,
    );
    expect(untimed(lines).map((line) => /copies \d, … ms to encode$/.exec(line)?.[0])).toEqual([
      "copies 3, … ms to encode",
      "copies 0, … ms to encode",
      "copies 0, … ms to encode",
    ]);
  });

  test("copies from private memory to the cpu's memory are logged; views cause none", () => {
    const { lines } = record(
      `const x = withBackend("metal", () => orchard.full([1, 16, 2, 8], 3, { dtype: "float32", storage: "private" }));
      const view = orchard.transpose(x, 1, 2);
      withBackend("metal", () => flashAttention(view, view, view));
      flashAttention(view, view, view);
      flashAttention(view, view, view);`,
      on,
    );
    expect(lines.map((line) => /on (\w+) .*copies (\d)/.exec(line)?.slice(1))).toEqual([
      ["metal", "0"],
      ["cpu", "1"],
      ["cpu", "0"],
    ]);
  });

  test("a failure and the fallback after it are two lines with one cause, and one call", () => {
    const { lines, folder } = record(
      `const [q, k, v] = withBackend("metal", () => operands().map((x) => x.detach()));
      metalContext().injectFault("pipeline");
      withBackend("metal", () => flashAttention(q, k, v));`,
      on,
    );
    const logged = untimed(lines).filter((line) => line.startsWith("forward"));
    expect(logged).toHaveLength(2);
    const cause = /^forward: failed on metal after .* ms: (.*)$/.exec(
      lines.find((line) => line.includes("failed on"))!.replace("[orchard] flashAttention ", ""),
    )?.[1];
    expect(cause?.length).toBeGreaterThan(10);
    expect(logged[1]).toStartWith(`forward: path fused on cpu (metal: ${cause}), float32, `);
    expect(countsIn(folder)).toEqual([expect.objectContaining({ forward: 1, backward: 0 })]);
  });
});

describe("the counts of passes", () => {
  test("counts of concurrent processes, one of them killed, are complete", async () => {
    const folder = newFolder();
    const { command, options } = child(
      `const [q, k, v] = operands([1, 1, 2, 2]);
      for (let call = 0; call < 200; call++) backward(sum(flashAttention(q, k, v)));
      console.log("done");
      if (process.env.FOREVER) for (;;) flashAttention(q, k, v);`,
      folder,
      on,
    );
    const ending = [0, 1, 2].map(() => Bun.spawn(command, { ...options, stderr: "ignore" }));
    const killed = Bun.spawn(command, { ...options, stderr: "ignore", env: { ...options.env, FOREVER: "1" } });
    await killed.stdout.getReader().read(); // waits until it prints "done"
    killed.kill("SIGKILL");
    await Promise.all([...ending, killed].map(({ exited }) => exited));
    const counts = countsIn(folder);
    expect(counts.map(({ pid }) => pid).sort()).toEqual([...ending, killed].map(({ pid }) => pid).sort());
    for (const { pid, forward, backward } of counts) {
      expect(backward).toBe(200);
      if (pid !== killed.pid) expect(forward).toBe(200);
      else expect(forward).toBeGreaterThanOrEqual(200);
    }
  });

  test("counts that can't be written cause one warning, and passes continue", () => {
    const { lines, exitCode } = record(`${step} ${step.replace("const [q, k, v]", "const [a, b, c]")}`, {
      ...on,
      TMPDIR: "/nowhere",
    });
    expect(exitCode).toBe(0);
    const warnings = lines.filter((line) => !line.startsWith("[orchard] flashAttention "));
    expect(warnings).toEqual([
      expect.stringMatching(/^\[orchard\] \/nowhere\/flashattn_kernel_calls\.log can't be written, /),
    ]);
    expect(lines).toHaveLength(5);
  });
});
