/** Mistakes with tensors, planted in a correct kernel: the checker finds each at its line. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { metalContext } from "../../../../src/backend/metal/context.ts";
import { metalKernel } from "../../../../src/index.ts";
import { header } from "./program.ts";

const { isSoftware } = metalContext();

beforeAll(() => {
  if (isSoftware) metalContext().configure("check", true);
});
afterAll(() => {
  if (isSoftware) metalContext().configure("check", false);
});

/** Products of 32 x 32 matrices, each in four tiles of 16 x 16; `total` is in registers. */
const program = `kernel void k(device half *a, device half *b, device float *c,
    uint2 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr int size = 32;
  const int row = group.y * 16, column = group.x * 16;
  auto left = tensor(a, dextents<int32_t, 2>(size, size));
  auto right = tensor(b, dextents<int32_t, 2>(size, size));
  auto out = tensor(c, dextents<int32_t, 2>(size, size));
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
      16, 16, 16, false, false, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<shape, execution_simdgroup> op;
  auto x = op.get_left_input_cooperative_tensor<half, half, float>();
  auto y = op.get_right_input_cooperative_tensor<half, half, float>();
  auto total = op.get_destination_cooperative_tensor<decltype(x), decltype(y), float>();
  for (ushort i = 0; i < total.get_capacity(); ++i) total[i] = 0;
  for (int k = 0; k < size; k += 16) {
    auto l = left.slice<16, 16>(k, row);
    auto r = right.slice(column, k);
    x.load(l);
    y.load(r);
    op.run(x, y, total);
  }
  total.store(out.slice(column, row));
}
`;

interface Fault {
  readonly from: string;
  readonly to: string;
  readonly kind: string;
  readonly says: string;
  /** The text of the line that the finding names, if it differs from `to`. */
  readonly at?: string;
  readonly severity?: "note";
}

const faults: readonly Fault[] = [
  {
    from: "left.slice<16, 16>(k, row)",
    to: "left.slice<16, 16>(k + 8, row)",
    kind: "out-of-bounds",
    says: "slices a tensor up to position 40 of a dimension of size 32",
  },
  {
    from: "right.slice(column, k)",
    to: "right.slice(column - k, k)",
    kind: "out-of-bounds",
    says: "slices a tensor from position -16 of a dimension of size 32",
  },
  {
    from: "out.slice(column, row)",
    to: "out.slice(column, row + 33)",
    kind: "out-of-bounds",
    says: "slices a tensor from position 33 of a dimension of size 32",
  },
  {
    from: "op.run(x, y, total)",
    to: "auto s = right.slice(column, k + 8); op.run(x, s, total)",
    kind: "tensor-shape",
    says: "multiplies 16 elements of a dimension for which a tensor has the size 8",
  },
  {
    from: "op.run(x, y, total)",
    to: "auto s = left.slice<16, 8>(k, row); op.run(s, y, total)",
    kind: "tensor-shape",
    says: "multiplies 16 elements of a dimension for which a tensor has the size 8",
  },
  {
    from: "y.load(r);",
    to: "if (k == 16) y.load(r);",
    at: "op.run",
    kind: "uninitialized-read",
    says: "multiplies element 0 of 8 of a cooperative tensor",
  },
  {
    from: "total.get_capacity(); ++i) total[i] = 0",
    to: "1; ++i) total[i] = 0",
    at: "op.run",
    kind: "uninitialized-read",
    says: "adds to element 1 of 8 of a destination",
    severity: "note",
  },
  {
    from: "op.run(x, y, total)",
    to: "if (lane < 16) op.run(x, y, total)",
    kind: "nonuniform-matrix",
    says: "matmul2d::run",
  },
  {
    from: "total.store(",
    to: "if (lane != 3) total.store(",
    kind: "nonuniform-matrix",
    says: "cooperative_tensor::store",
  },
  {
    from: "op.run(x, y, total);",
    to: "mpp::tensor_ops::matmul2d<shape, execution_simdgroups<2>> o; o.run(l, r, out);",
    kind: "nonuniform-matrix",
    says: "runs an operation of 2 SIMD-groups in a threadgroup of 1",
  },
  {
    from: "auto left = tensor(a, dextents<int32_t, 2>(size, size))",
    at: "x.load",
    to: "auto left = tensor(a, dextents<int32_t, 2>(size, size), array<int, 2>({1, size + 8}))",
    kind: "out-of-bounds",
    says: "buffer 'a', which is 2048 bytes long",
  },
];

function findings(source: string) {
  metalContext().report({ clear: true });
  const kernel = metalKernel({ name: "k", source: header + source, languageVersion: "4.0", fileName: "k.metal" });
  const ones = () => new Float16Array(32 * 32).fill(1);
  try {
    kernel.run({ a: ones(), b: ones(), c: new Float32Array(32 * 32) }, { threadgroups: [2, 2], threadgroup: 32 });
  } catch (error) {
    if (!String(error).includes("out-of-bounds")) throw error;
  }
  return metalContext().report({ clear: true }).findings;
}

test.skipIf(!isSoftware)("the kernel without a mistake has no findings", () => {
  expect(findings(program).map(({ message }) => message)).toEqual([]);
});

test.skipIf(!isSoftware).each(faults)(
  "the checker finds the mistake: $to",
  ({ from, to, kind, says, at = to.split(";")[0], severity = "error" }) => {
    const source = program.replace(from, () => to);
    expect(source).not.toBe(program);
    const line = (header + source).split("\n").findIndex((text) => text.includes(at)) + 1;
    const found = findings(source);
    const one = found.find((each) => each.kind === kind && each.message.includes(says));
    const place = { line: one?.line, severity: one?.severity as string };
    expect(place, found.map(({ message }) => message).join("\n")).toEqual({ line, severity });
  },
);
