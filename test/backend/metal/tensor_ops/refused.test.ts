/** Drawn programs with tensors that Metal's compiler rejects, each with a similar legal program. */
import { expect, test } from "bun:test";
import { metalContext } from "../../../../src/backend/metal/context.ts";
import { Random } from "../../../ops/samples.ts";
import { seed } from "../../../support/some.ts";
import { refusal } from "../legal/refusal.ts";
import { pick } from "../legal/types.ts";
import { header } from "./program.ts";

const { isSoftware } = metalContext();

/** A kernel with the operation `op` of these sizes, tensors `a`, `b` and `c` in memory, and statements. */
interface Program {
  readonly m: number;
  readonly n: number;
  readonly k: number | "static_cast<int>(dynamic_extent)";
  readonly left: string;
  readonly right: string;
  readonly out: string;
  readonly scope: string;
  readonly statements: string;
}

const sourceOf = ({ m, n, k, left, right, out, scope, statements }: Program) => `${header}
kernel void k(device ${left} *x, device ${right} *y, device ${out} *z, uint lane [[thread_index_in_simdgroup]]) {
  auto a = tensor(x, dextents<int, 2>(64, 64));
  auto b = tensor(y, dextents<int, 2>(64, 64));
  tensor<device ${out}, dextents<int, 2>, tensor_inline> c(z, dextents<int, 2>(64, 64));
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(${m}, ${n}, ${k});
  mpp::tensor_ops::matmul2d<shape, ${scope}> op;
  ${statements}
}
`;

const sums = (left: string, right: string, out: string) =>
  `auto sums = op.get_destination_cooperative_tensor<${left}, ${right}, ${out}>();`;
const inputs = `auto l = op.get_left_input_cooperative_tensor<half, half, float>();
  auto r = op.get_right_input_cooperative_tensor<half, half, float>();`;
const clear = "for (ushort i = 0; i < sums.get_capacity(); ++i)";

interface Pair {
  readonly name: string;
  readonly legal: Partial<Program>;
  readonly illegal: Partial<Program>;
}

const run = "op.run(a, b, c);";

const pairs: readonly Pair[] = [
  { name: "a size is a multiple of 16", legal: { m: 8, n: 32 }, illegal: { m: 8, n: 8 } },
  { name: "N is a multiple of 8", legal: { m: 16, n: 24 }, illegal: { m: 16, n: 20 } },
  { name: "K is a multiple of 16", legal: { k: 48 }, illegal: { k: 24 } },
  { name: "types of a product", legal: { left: "bfloat", out: "bfloat" }, illegal: { left: "bfloat", out: "int" } },
  { name: "sums of integers", ...types("int8_t", "uint8_t", "int", "bfloat") },
  { name: "sums of float32", ...types("float", "half", "float", "half") },
  { name: "elements of operands", legal: { left: "int8_t" }, illegal: { left: "short" } },
  { name: "char is not int8_t", legal: { left: "int8_t" }, illegal: { left: "char" } },
  { name: "operands are not const", legal: { left: "half" }, illegal: { left: "const half" } },
  {
    name: "operands are variables",
    legal: { statements: "auto s = a.slice(16, 0); op.run(s, b, c);" },
    illegal: { statements: "op.run(a.slice(16, 0), b, c);" },
  },
  {
    name: "results are stored in temporary tensors",
    legal: { statements: `${sums("decltype(a)", "decltype(b)", "float")} sums.store(c.slice(16, 0));` },
    illegal: { statements: `${sums("decltype(a)", "decltype(b)", "float")} sums.store(z + 16);` },
  },
  {
    name: "types of a destination's operands, in the order of run()",
    legal: { left: "bfloat", statements: `${sums("decltype(a)", "decltype(b)", "float")} op.run(a, b, sums);` },
    illegal: { left: "bfloat", statements: `${sums("decltype(b)", "decltype(a)", "float")} op.run(a, b, sums);` },
  },
  {
    name: "roles of cooperative operands",
    legal: { statements: `${inputs} op.run(l, r, c);` },
    illegal: { statements: `${inputs} op.run(r, l, c);` },
  },
  {
    name: "cooperative inputs have a K",
    legal: { k: 32, statements: `${inputs} op.run(l, b, c);` },
    illegal: { k: "static_cast<int>(dynamic_extent)", statements: `${inputs} op.run(l, b, c);` },
  },
  {
    name: "cooperative tensors do not know get_mask",
    legal: {
      statements: `${sums("decltype(a)", "decltype(b)", "float")} ${clear} if (sums.is_valid_element(i)) sums[i] = 0;`,
    },
    illegal: {
      statements: `${sums("decltype(a)", "decltype(b)", "float")} ${clear} if (sums.get_mask(i)) sums[i] = 0;`,
    },
  },
  { name: "the scope is of SIMD-groups", legal: { scope: "execution_simdgroups<4>" }, illegal: { scope: "int" } },
  {
    name: "at least one SIMD-group",
    legal: { scope: "execution_simdgroup" },
    illegal: { scope: "execution_simdgroups<0>" },
  },
  {
    name: "the destination's size is the operation's",
    legal: { statements: other(16, 32) },
    illegal: { statements: other(32, 16) },
  },
  {
    name: "address spaces of tensors",
    legal: {
      statements:
        "tensor<device half, dextents<int, 2>, tensor_inline> t(y, dextents<int, 2>(64, 64)); op.run(a, t, c);",
    },
    illegal: {
      statements:
        "tensor<threadgroup half, dextents<int, 2>, tensor_inline> t(y, dextents<int, 2>(64, 64)); op.run(a, t, c);",
    },
  },
];

function types(left: string, right: string, out: string, wrong: string): Omit<Pair, "name"> {
  return { legal: { left, right, out }, illegal: { left, right, out: wrong } };
}

/** Declares a destination of another operation, with the sizes m and n. */
function other(m: number, n: number): string {
  return `constexpr auto shape2 = mpp::tensor_ops::matmul2d_descriptor(${m}, ${n}, 32);
  mpp::tensor_ops::matmul2d<shape2, execution_simdgroup> op2;
  auto sums = op2.get_destination_cooperative_tensor<decltype(a), decltype(b), float>(); op.run(a, b, sums);`;
}

/** Sizes and types are drawn, except those that the case is about. */
function complete(random: Random, own: Partial<Program>): Program {
  const drawn = { m: pick(random, [16, 32]), n: pick(random, [16, 32]), k: pick(random, [16, 32]) };
  const fixed = own.statements?.includes("shape2") ? { m: 16, n: 32, scope: "execution_simdgroup" } : {};
  return {
    ...drawn,
    left: "half",
    right: "half",
    out: "float",
    scope: "execution_simdgroup",
    statements: run,
    ...fixed,
    ...own,
  };
}

test.skipIf(!isSoftware).each(pairs)("an illegal program is rejected: $name", ({ name, legal, illegal }) => {
  const start = seed * 100 + name.length;
  const [good, bad] = [legal, illegal].map((own) => sourceOf(complete(new Random(start), own)));
  expect(refusal(good, "4.0"), good).toBeUndefined();
  expect(refusal(bad, "4.0"), bad).toContain("error");
});

test.skipIf(!isSoftware)("tensors require Metal 4.0", () => {
  const source = sourceOf(complete(new Random(seed), {}));
  for (const version of ["4.0", "4.1"] as const) expect(refusal(source, version)).toBeUndefined();
  for (const version of ["3.1", "3.2"] as const)
    expect(refusal(source, version)).toContain("tensors require Metal 4.0");
});

test.skipIf(!isSoftware)("a program that does not include tensors may use their names", () => {
  const source = `#include <metal_stdlib>
using namespace metal;
struct tensor { float extents; };
constant int dynamic_extent = 3;
kernel void k(device tensor *x) { x[0].extents = dynamic_extent; }`;
  for (const version of ["3.1", "4.0"] as const) expect(refusal(source, version)).toBeUndefined();
});
