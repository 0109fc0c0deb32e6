/**
 * Drawn loops that wait for memory, and arrays of a thread that are read before they are written, next to similar
 * kernels that are correct.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { metalKernel } from "../../../src/index.ts";
import { Random } from "../../ops/samples.ts";
import { seed } from "../../support/some.ts";
import { pick } from "./legal/types.ts";

const isSoftware = metalContext().isSoftware;

beforeAll(() => {
  if (!isSoftware) return;
  metalContext().configure("check", true);
  metalContext().configure("spin_limit", "1000");
});

afterAll(() => {
  if (!isSoftware) return;
  metalContext().configure("check", false);
  metalContext().configure("spin_limit", "1000000");
});

const helpers = `#include <metal_stdlib>
using namespace metal;
struct Ready { uint flag; };
template <typename T> void fill(thread T *a, uint from, uint to, T value) {
  for (uint k = from; k < to; k++) a[k] = value;
}
template <typename T> T total(thread const T *a, uint count) {
  T sum = T(0);
  for (uint k = 0; k < count; k++) sum += a[k];
  return sum;
}
`;
const lines = helpers.split("\n").length;

/** Runs the statements in one threadgroup; returns the kinds of the findings, and the lines after the helpers'. */
function findings(statements: string): string[] {
  metalContext().report({ clear: true });
  const source = `${helpers}kernel void k(device const float *x, device uint *flag, device uint &one, device float *out,
    uint i [[thread_position_in_threadgroup]]) {
  threadgroup uint shared[32]; shared[i] = 0; threadgroup_barrier(mem_flags::mem_threadgroup);
  device uint *p = flag + 1; device Ready *ready = (device Ready *)flag; uint v = 0, w = 0, n = 0; float f = x[i];
  ${statements}
  out[i] += v + w + n; }`;
  const inputs = { x: new Float32Array(32).map((_, at) => at), flag: new Uint32Array(2), one: new Uint32Array(1) };
  try {
    metalKernel({ name: "k", source }).run({ ...inputs, out: new Float32Array(32) }, { grid: 32, threadgroup: 32 });
  } catch (error) {
    if (!String(error).includes("waits in a loop")) throw error;
  }
  const own = metalContext().report({ clear: true }).findings;
  return own.map(({ kind, line, message }) =>
    [kind, line >= lines + 4 ? "here" : "before", ...(/array '(\w+)'/.exec(message)?.slice(1) ?? [])].join(" "),
  );
}

/** Reads of memory that is 0: in a buffer or the threadgroup, directly, through pointers or through a reference. */
const reads = ["flag[0]", "flag[i & 1]", "*p", "shared[1]", "one", "ready->flag", "(int(flag[0]) & 3)"];

const waits: readonly ((a: string, b: string) => string)[] = [
  (a) => `while (${a} == 0) {}`,
  (a) => `while (!${a}) ;`,
  (a, b) => `do {} while (${a} != 1 && ${b} == 0);`,
  (a) => `for (; ${a} < 1;) {}`,
  (a) => `while (true) { if (${a} != 0) break; }`,
  (a, b) => `for (;;) { if (${a} == 1) { break; } if (${b} > 2) return; }`,
  (a) => `do { v = ${a}; } while (v == 0);`,
  (a) => `while (v == 0) v = ${a};`,
  (a, b) => `do { v = ${a}; uint u = v + ${b}; w = u; } while (w == 0);`,
  (a) => `if (i < 40) while (${a} == n) {} else v = 1;`,
];

test.skipIf(!isSoftware).each(waits.map((_, at) => at))("loop %d, which waits for memory, is reported", (at) => {
  const random = new Random(seed * 100 + at);
  const statements = waits[at](pick(random, reads), pick(random, reads));
  expect([statements, ...findings(statements)]).toEqual([statements, "spin-wait here"]);
});

/** Loops that end: each iteration does other work, lets other threads run, or is the only one. */
const ends: readonly ((a: string) => string)[] = [
  (a) => `while (${a} == 0 && n < 5000) n++;`,
  (a) => `do { v = ${a} + v + 1; } while (v < 5000);`,
  (a) => `for (; ${a} + n < 5000;) n += 1;`,
  (a) => `while (true) { if (${a} + ++n > 5000) break; }`,
  (a) => `while (n < 5000) { n = n + 1; v = ${a}; }`,
  (a) => `while (${a} != 0) {}`,
  (a) => `do { w = ${a}; } while (w != 0);`,
  (a) => `for (uint j = 0; j < 5000; j++) { v = j; while (v == 0) v = ${a} + 1; }`,
  () => `do if (n < 3) { n++; } while (n < 2);`,
];

test.skipIf(!isSoftware).each(ends.map((_, at) => at))("loop %d ends without a finding", (at) => {
  const statements = ends[at](pick(new Random(seed * 100 + at), reads));
  expect([statements, ...findings(statements)]).toEqual([statements]);
});

/** Arrays in which a loop, a call or statements write all elements but one. */
const unwritten: readonly ((length: number, gap: number) => string)[] = [
  (length, gap) => `float a[${length}]; for (uint k = 0; k < ${length}; k++) if (k != ${gap}) a[k] = f;`,
  (length, gap) => `float a[${length}]; fill(a, 0u, ${gap}u, f); fill(a, ${gap + 1}u, ${length}u, f);`,
  (length, gap) =>
    `float a[${length}]; ${Array.from({ length }, (_, at) => (at === gap ? "" : `a[${at}] = f;`)).join(" ")}`,
];

test.skipIf(!isSoftware).each([0, 1, 2, 3, 4, 5])("the checker finds the unwritten element of array %d", (at) => {
  const random = new Random(seed * 100 + at);
  const [length, write] = [random.integer(3, 8), unwritten[at % unwritten.length]];
  const statements = `${write(length, random.integer(0, length - 1))} out[i] = total(a, ${length}u);`;
  expect([statements, ...findings(statements)]).toEqual([statements, "uninitialized-read before a"]);
});

test
  .skipIf(!isSoftware)
  .each([
    "float a[4]; for (uint k = 0; k < 4; k++) { if (f > 2) a[k] = f; } out[i] = a[1];",
    "float a[4]; for (uint k = 0; k < (i & 1); k++) a[k] = f; out[i] = a[1];",
    "float a[2][3]; for (uint k = 0; k < 3; k++) a[0][k] = f; out[i] = a[i & 1][2];",
    "for (uint m = 0; m < 2; m++) { float a[2]; if (m == 0) a[1] = f; out[i] += a[1]; }",
  ])("an array that is not always written is found: %s", (statements) => {
  expect(findings(statements)).toEqual(["uninitialized-read here a"]);
});

test
  .skipIf(!isSoftware)
  .each([
    "float a[4]; for (uint k = 0; k < 4; k++) a[k] = f; out[i] = total(a, 4u);",
    "float a[2][3]; for (uint j = 0; j < 2; j++) for (uint k = 0; k < 3; k++) a[j][k] = f; out[i] = a[1][2];",
    "float a[4]; fill(a, 0u, 4u, f); out[i] = total(a, 4u);",
    "float a[4] = {f}; a[i & 3] += 1; out[i] = total(a, 4u);",
    "float3 a[2]; a[0].x = f; a[0].y = f; a[0].z = f; a[1] = a[0]; out[i] = a[1].z;",
    "float a[4]; *(thread float4 *)a = float4(f); out[i] = a[3];",
    "float a[2]; a[1] = modf(f, a[0]); out[i] = a[0] + a[1];",
    "float a[4]; for (uint k = 0; k < 4; k++) if (k <= i) a[k] = f; out[i] = a[0];",
    "switch (i & 1) { case 0: float a[2]; a[0] = f; a[1] = f; out[i] = a[1]; break; default: out[i] = 0; }",
    "struct P { float a[2]; }; P q; q.a[0] = f; q.a[1] = f; out[i] = q.a[1];",
    "float a[4]; for (int k = 3; k >= 0; k--) a[k] = simd_sum(f); out[i] = a[0];",
  ])("an array that is written first has no finding: %s", (statements) => {
  expect(findings(statements)).toEqual([]);
});
