/** ORCHARD_METAL_CHECK: findings are printed when they are made, and a process with errors fails. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { metalContext } from "../../../src/index.ts";
import { withoutAnnouncement } from "../../support/child.ts";
import { bunWords } from "../../support/program.ts";

const software = metalContext().isSoftware;
const program = (body: string, index = "i + 1") => `
import { metalContext, metalKernel } from "${join(packageRoot, "src/index.ts")}";
const context = metalContext();
const copy = metalKernel({ name: "copy", fileName: "shift.metal", source: \`#include <metal_stdlib>
kernel void copy(device const float* from, device float* to, uint i [[thread_position_in_grid]]) {
  to[i] = from[${index}];
}\`, context });
const x = () => Float32Array.from({ length: 60 }, (_, i) => i);
const once = () => copy.run({ from: x(), to: x() }, { grid: 60, threadgroup: 60 }).findings;
${body}`;

function run(check: string | undefined, text: string) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "-e", text], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_METAL_CHECK: check },
  });
  return { out: stdout.toString(), err: withoutAnnouncement(stderr.toString()), exitCode };
}

const finding =
  /^shift\.metal:3:\d+: error: kernel .copy.: thread \(59,.* byte 240 of buffer 'from'.*compare.*\[out-of-bounds\]$/gm;

test.if(software)("a finding is printed once, with file, line and advice, and the process fails", () => {
  const { out, err, exitCode } = run("1", program("once(); once(); console.log('computed');"));
  expect(out).toBe("computed\n");
  expect(err.match(finding)).toHaveLength(1);
  expect(err).toEndWith(
    "orchard: the Metal checker found 1 error and 0 notes: exit status 1 (ORCHARD_METAL_CHECK=report prints only)\n",
  );
  expect(exitCode).toBe(1);
});

test.if(software)("`report` prints findings, and the exit status is the program's", () => {
  const { err, exitCode } = run("report", program("once();"));
  expect(err.match(finding)).toHaveLength(1);
  expect(err).toEndWith("orchard: the Metal checker found 1 error and 0 notes\n");
  expect(exitCode).toBe(0);
});

test.if(software)("a program without findings prints nothing, and without the variable there are no findings", () => {
  expect(run("1", program("once();", "i"))).toEqual({ out: "", err: "", exitCode: 0 });
  expect(run(undefined, program("console.log(once().length);"))).toEqual({ out: "0\n", err: "", exitCode: 0 });
});

test.if(software)("work is checked even if the program does not wait for it", () => {
  const text = program(`
    import { DeviceBuffer } from "${join(packageRoot, "src/index.ts")}";
    const of = () => new DeviceBuffer(x(), { context });
    copy.encode({ from: of(), to: of() }, { grid: 60, threadgroup: 60 });`);
  const { err, exitCode } = run("1", text);
  expect(err).toContain("reads 4 bytes at byte 240 of buffer 'from'");
  expect(exitCode).toBe(1);
});

test.if(software)('configure("check") finds what the environment variable finds, even in pooled buffers', () => {
  const text = program(`
    once(); // its buffers go back to the pool
    context.configure("check", true);
    console.log(JSON.stringify(once().map(({ kind, offset }) => [kind, offset])));`);
  expect(run(undefined, text)).toEqual({ out: '[["out-of-bounds",240]]\n', err: "", exitCode: 0 });
});

test.if(software)("memory that the pool reuses counts as unwritten", () => {
  const text = program(
    `
    import { DeviceBuffer } from "${join(packageRoot, "src/index.ts")}";
    context.configure("check", true);
    const to = x();
    { using old = new DeviceBuffer(x(), { context }); old.read(Float32Array); }
    using fresh = new DeviceBuffer(240, { context });
    copy.encode({ from: fresh, to: new DeviceBuffer(to, { context }) }, { grid: 60, threadgroup: 60 });
    context.wait();
    console.log(context.statistics().poolHits > 0, context.report().findings.map(({ kind }) => kind).join());`,
    "i",
  );
  expect(run(undefined, text)).toEqual({ out: "true uninitialized-read\n", err: "", exitCode: 0 });
});

test("any other value of the variable is rejected", () => {
  const { err, exitCode } = run("yes", 'import { metalContext } from "./src/index.ts"; metalContext();');
  expect(err).toContain('expected ORCHARD_METAL_CHECK to be 0, 1 or report, got "yes"');
  expect(exitCode).toBe(1);
});
