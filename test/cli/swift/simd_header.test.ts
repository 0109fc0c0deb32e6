/** The functions of `<simd/simd.h>` in C and C++, with drawn operands, equal formulas in float64. */
import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { appleHeaders } from "../../../src/cli/swift_module.ts";
import { findSwift } from "../../../src/cli/toolchain.ts";
import { Random } from "../../ops/samples.ts";
import { testFolder } from "../../support/folder.ts";

const folder = testFolder("simd-header");
const swift = process.platform === "linux" ? findSwift() : undefined;
const clang = swift && join(dirname(swift.swiftc), "clang");

const random = new Random(3361);
const draw = (count: number): number[] => Array.from({ length: count }, () => Math.fround(6 * random.next() - 3));

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const dot = (a: readonly number[], b: readonly number[]): number => sum(a.map((value, i) => value * b[i]));
const length = (a: readonly number[]): number => Math.sqrt(dot(a, a));

/** Expressions of vectors a and b and a square matrix m with the columns `columns`, and their elements by a formula. */
function expressions(n: number, type: string) {
  const [a, b] = [draw(n), draw(n)];
  const columns = Array.from({ length: n }, (_, i) => draw(n).map((value, k) => value + (i === k ? 9 : 0)));
  const each = (f: (x: number, y: number) => number) => a.map((x, i) => f(x, b[i]));
  const scaled = (by: number) => b.map((x) => x * by);
  const product = (v: readonly number[]) => a.map((_, row) => sum(columns.map((column, i) => column[row] * v[i])));
  const list: [expression: string, expected: number | number[]][] = [
    ["simd_dot(a, b)", dot(a, b)],
    ["simd_length(a)", length(a)],
    ["simd_fast_distance(a, b)", length(each((x, y) => x - y))],
    ["simd_norm_one(a)", sum(a.map(Math.abs))],
    ["simd_norm_inf(a)", Math.max(...a.map(Math.abs))],
    ["simd_reduce_min(a)", Math.min(...a)],
    ["simd_normalize(b)", scaled(1 / length(b))],
    ["simd_project(a, b)", scaled(dot(a, b) / dot(b, b))],
    ["simd_abs(a)", a.map(Math.abs)],
    ["simd_clamp(a, -b * b, b * b)", each((x, y) => Math.min(Math.max(x, -y * y), y * y))],
    ["simd_mix(a, b, a)", each((x, y) => x + x * (y - x))],
    ["simd_select(a, b, a < b)", each((x, y) => Math.max(x, y))],
    ["simd_sign(a)", a.map(Math.sign)],
    ["simd_step(a, b)", each((x, y) => Number(y >= x))],
    ["simd_fract(a)", a.map((x) => x - Math.floor(x))],
    ["atan2(a, b)", each(Math.atan2)],
    ["exp(a) + cos(b)", each((x, y) => Math.exp(x) + Math.cos(y))],
    ["simd_any(a < b)", Number(each((x, y) => Number(x < y)).includes(1))],
    ["simd_all(a < b)", Number(!each((x, y) => Number(x < y)).includes(0))],
    ["simd_mul(m, a)", product(a)],
    ["simd_mul(a, m)", columns.map((column) => dot(a, column))],
    ["simd_mul(simd_mul(m, m), a)", product(product(a))],
    ["simd_mul(simd_inverse(m), simd_mul(m, a))", a],
    ["simd_mul(simd_transpose(m), a)", columns.map((column) => dot(a, column))],
  ];
  const vector = `simd_${type}${n}`;
  const made = (values: readonly number[]) => `simd_make_${type}${n}(${values.join(", ")})`;
  return {
    list,
    lines: [
      `${vector} a = ${made(a)}, b = ${made(b)};`,
      `${vector.slice(0, -1)}${n}x${n} m = simd_matrix(${columns.map(made).join(", ")});`,
    ],
  };
}

const cases = ["float", "double"].flatMap((type) => [2, 3, 4].map((n) => ({ n, type, ...expressions(n, type) })));

function program(): string {
  const blocks = cases.map(({ n, lines, list }) => {
    const prints = list.map(([expression, expected]) =>
      typeof expected === "number"
        ? `printf("%.17g\\n", (double)(${expression}));`
        : `for (int i = 0; i < ${n}; i++) printf("%.17g ", (double)(${expression})[i]); printf("\\n");`,
    );
    return `{ ${[...lines, ...prints].join("\n")} }`;
  });
  return `#include <simd/simd.h>\n#include <stdio.h>\nint main(void) {\n${blocks.join("\n")}\nreturn 0; }\n`;
}

test.if(clang !== undefined && existsSync(clang)).each(["c", "cpp"])("in %s", (language) => {
  const source = folder.file(`simd.${language}`);
  writeFileSync(source, program());
  const flags = ["-I", appleHeaders, "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-O1", source, "-lm"];
  const compiler = language === "cpp" ? `${clang}++` : clang!;
  const built = Bun.spawnSync([compiler, ...flags, "-o", folder.file("simd")], {
    env: { ...process.env, ...swift!.environment },
  });
  expect(built.stderr.toString()).toBe("");
  const printed = Bun.spawnSync([folder.file("simd")])
    .stdout.toString()
    .trim()
    .split("\n");
  const expected = cases.flatMap(({ n, type, list }) =>
    list.map(([name, values]) => ({ name: `${name}, ${type}${n}`, type, values })),
  );
  expect(printed).toHaveLength(expected.length);
  for (const [at, { name, type, values }] of expected.entries()) {
    const numbers = printed[at].trim().split(" ").map(Number);
    for (const [i, value] of [values].flat().entries())
      expect([name, Math.abs(numbers[i] - value) <= (type === "float" ? 3e-5 : 1e-13) * (1 + Math.abs(value))]).toEqual(
        [name, true],
      );
  }
});
