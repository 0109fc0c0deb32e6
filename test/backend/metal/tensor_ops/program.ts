/** Draws kernels that multiply with `matmul2d`, in the forms that MLX's and llama.cpp's kernels use. */
import type { DType } from "../../../../src/index.ts";
import type { Random } from "../../../ops/samples.ts";
import { pick } from "../legal/types.ts";

export const header = `#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
`;

/** Metal's type of each dtype. */
const metalTypes = { float16: "half", bfloat16: "bfloat", float32: "float", int8: "int8_t", uint8: "uint8_t" } as const;
type Factor = keyof typeof metalTypes;

/** Types of the left and right operands and of the destination. */
const types: readonly (readonly [Factor, Factor, DType])[] = [
  ["float16", "float16", "float32"],
  ["float16", "float16", "float16"],
  ["bfloat16", "bfloat16", "float32"],
  ["bfloat16", "bfloat16", "bfloat16"],
  ["float32", "float32", "float32"],
  ["float32", "float16", "float32"],
  ["bfloat16", "float16", "float32"],
  ["int8", "int8", "int32"],
  ["int8", "uint8", "int32"],
  ["float16", "int8", "float32"],
  ["bfloat16", "uint8", "float32"],
];

/** How an operand reaches the product. */
type Form = "device" | "sliced" | "threadgroup" | "loaded" | "indexed" | "lanes";
type Result = "memory" | "store" | "index";

export interface Product {
  readonly left: Factor;
  readonly right: Factor;
  readonly out: DType;
  /** The sizes of the matrices, and those of a tile; a tile's k of 0 is dynamic. */
  readonly size: readonly [m: number, n: number, k: number];
  readonly tile: readonly [m: number, n: number, k: number];
  readonly transposed: readonly [left: boolean, right: boolean];
  readonly groups: number;
  readonly forms: readonly [left: Form, right: Form];
  readonly result: Result;
  /** Elements between the ends of rows of each matrix and the next rows. */
  readonly padding: readonly [number, number, number];
}

export function drawProduct(random: Random): Product {
  const [left, right, out] = pick(random, types);
  const groups = pick(random, [1, 1, 2, 4]);
  const isFixed = random.next() < 0.6;
  const tile = [
    pick(random, [16, 32, 64]),
    pick(random, [8, 16, 32, 48]),
    isFixed ? pick(random, [16, 32]) : 0,
  ] as const;
  const forms = isFixed && groups === 1 ? allForms : memoryForms;
  const times = (step: number) => (isFixed ? step * random.integer(1, 2) : random.integer(1, 70));
  const chosen = [pick(random, forms), pick(random, forms)] as const;
  return {
    left,
    right,
    out,
    groups,
    tile,
    forms: chosen,
    size: [random.integer(1, 2 * tile[0]), random.integer(1, 2 * tile[1]), times(tile[2])],
    transposed: [random.next() < 0.5, random.next() < 0.5],
    result: pick(random, ["memory", "store", "index"]),
    padding: [random.integer(0, 3), random.integer(0, 3), random.integer(0, 3)],
  };
}

const memoryForms = ["device", "sliced", "threadgroup"] as const;
const allForms = [...memoryForms, "loaded", "indexed", "lanes"] as const;

/** An operand's layout in memory. `along` is the dimension of k: 0 if adjacent elements differ in k. */
interface Operand {
  readonly name: "left" | "right";
  readonly type: string;
  readonly form: Form;
  readonly along: 0 | 1;
  /**
   * The number of elements along the other dimension, in the matrix and in a tile, and the variable with the tile's
   * first index.
   */
  readonly count: number;
  readonly tile: number;
  readonly first: string;
}

const operandsOf = ({ left, right, tile, size, transposed, forms }: Product): readonly [Operand, Operand] => [
  {
    name: "left",
    type: metalTypes[left],
    form: forms[0],
    along: transposed[0] ? 1 : 0,
    count: size[0],
    tile: tile[0],
    first: "row",
  },
  {
    name: "right",
    type: metalTypes[right],
    form: forms[1],
    along: transposed[1] ? 0 : 1,
    count: size[1],
    tile: tile[1],
    first: "column",
  },
];

/** The shape of an operand's memory: rows and columns. */
export function memoryOf(product: Product, index: 0 | 1): readonly [number, number] {
  const { along, count } = operandsOf(product)[index];
  return along === 0 ? [count, product.size[2]] : [product.size[2], count];
}

/** Arranges two numbers, one for k and one for the other dimension, in the order of the dimensions. */
const inOrder = ({ along }: Operand, k: string | number, other: string | number): string =>
  along === 0 ? `${k}, ${other}` : `${other}, ${k}`;

/** Statements that create the tensor `<name>_tile`, a tile of the operand that begins at `k`. */
function makeTile(operand: Operand, product: Product): string {
  const { name, type, form, count, tile, first } = operand;
  const depth = product.tile[2];
  const pitch = (operand.along === 0 ? product.size[2] : count) + product.padding[name === "left" ? 0 : 1];
  const whole = `tensor(${name}, dextents<int32_t, 2>(${inOrder(operand, "K", count)}), array<int, 2>({1, ${pitch}}))`;
  const slice = `${name}_all.slice(${inOrder(operand, "k", first)})`;
  const at = (x: string, y: string) => `${name}[(${y}) * ${pitch} + ${x}]`;
  const [kAt, otherAt] = operand.along === 0 ? ["x", "y"] : ["y", "x"];
  const guarded = `(${kAt} < K && ${otherAt} < ${count} ? ${at("x", "y")} : ${type}(0))`;
  const place = operand.along === 0 ? `x = k + c, y = ${first} + r` : `x = ${first} + c, y = k + r`;
  const high = operand.along === 0 ? tile : depth || 80;
  const wide = operand.along === 0 ? depth || 80 : tile;
  switch (form) {
    case "sliced":
      return `auto ${name}_all = ${whole}; auto ${name}_tile = ${slice};`;
    case "device": // the rest of k, as in llama.cpp
      return `const int ${name}_k = ${depth === 0 ? "K" : `min(${depth}, K - k)`};
  const int ${name}_x = ${operand.along === 0 ? "k" : first}, ${name}_y = ${operand.along === 0 ? first : "k"};
  tensor<device ${type}, dextents<int32_t, 2>, tensor_inline> ${name}_tile(${name} + ${name}_y * ${pitch} + ${name}_x,
      dextents<int32_t, 2>{${inOrder(operand, `${name}_k`, `${count} - ${first}`)}}, array<int, 2>{1, ${pitch}});`;
    case "threadgroup":
      return `threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = thread_index; i < ${high * wide}; i += ${product.groups * 32}) {
    const int r = i / ${wide}, c = i % ${wide}, ${place};
    ${name}_memory[i] = ${guarded};
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  auto ${name}_tile = tensor(${name}_memory, dextents<int32_t, 2>(${inOrder(operand, depth || "K", tile)}),
      array<int, 2>({1, ${wide}}));`;
    case "loaded":
      return `auto ${name}_all = ${whole}; auto ${name}_slice = ${slice};
  auto ${name}_tile = op.template get_${name}_input_cooperative_tensor<L, R, D>(); ${name}_tile.load(${name}_slice);`;
    case "indexed":
      return `auto ${name}_tile = op.template get_${name}_input_cooperative_tensor<L, R, D>();
  for (ushort i = 0; i < ${name}_tile.get_capacity(); ++i) {
    if (!${name}_tile.is_valid_element(i)) continue;
    const auto index = ${name}_tile.get_multidimensional_index(i);
    const int r = index[1], c = index[0], ${place};
    ${name}_tile[i] = ${guarded};
  }`;
    case "lanes": {
      // Fragments of 16 x 16 in the order of m or n, in the layout on which MLX depends.
      const across = Math.ceil((depth || 16) / 16);
      const [down, right] = [`f / ${across} * 16`, `f % ${across} * 16`];
      const [fr, fc] = operand.along === 0 ? [down, right] : [right, down];
      return `auto ${name}_tile = op.template get_${name}_input_cooperative_tensor<L, R, D>();
  for (short f = 0; f < ${across * Math.ceil(tile / 16)}; f++) for (short e = 0; e < 8; e++) {
    const int r = ${fr} + ((lane / 4 & 4) | (lane / 2 & 3)) + e / 4 * 8;
    const int c = ${fc} + ((lane / 4 & 2) | (lane & 1)) * 4 + e % 4, ${place};
    ${name}_tile[f * 8 + e] = ${guarded};
  }`;
    }
  }
}

/** Bytes of threadgroup memory for an operand that is copied there. */
function declareMemory({ name, type, form, tile }: Operand, product: Product): string {
  return form === "threadgroup" ? `threadgroup ${type} ${name}_memory[${tile * (product.tile[2] || 80)}];` : "";
}

/** The statements that write the result, after the loop over k. */
const results: Readonly<Record<Result, string>> = {
  memory: "",
  store: "sums.store(out_tile);",
  index: `for (ushort i = 0; i < sums.get_capacity(); ++i) {
    if (!sums.is_valid_element(i)) continue;
    const auto index = sums.get_multidimensional_index(i);
    if (row + index[1] < M && column + index[0] < N) out[(row + index[1]) * pitch + column + index[0]] = D(sums[i]);
  }`,
};

/** out += left right if the destination is memory, else out = left right. */
export function sourceOf(product: Product): string {
  const { tile, size, transposed, groups, result, padding, out } = product;
  const operands = operandsOf(product);
  const outType = out === "int32" ? "int" : metalTypes[out as Factor];
  const depth = tile[2] || "static_cast<int>(dynamic_extent)";
  const typed = operands.map(typeOfTile).join(", ");
  const start = `auto sums = op.template get_destination_cooperative_tensor<${typed}, D>();
  for (ushort i = 0; i < sums.get_capacity(); ++i) sums[i] = 0;`;
  const tiles = operands.map((each) => makeTile(each, product)).join("\n  ");
  const loop = `for (int k = 0; k < K; k += ${tile[2] || "K"}) {
  ${tiles}
  op.run(left_tile, right_tile, ${result === "memory" ? "out_tile" : "sums"});
  ${operands.some(({ form }) => form === "threadgroup") ? "threadgroup_barrier(mem_flags::mem_threadgroup);" : ""}
  ${result === "memory" ? "threadgroup_barrier(mem_flags::mem_device);" : ""}
}`;
  return `${header}
kernel void k(device ${operands[0].type} *left, device ${operands[1].type} *right, device ${outType} *out,
    uint2 group [[threadgroup_position_in_grid]], ushort thread_index [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]]) {
  typedef ${operands[0].type} L; typedef ${operands[1].type} R; typedef ${outType} D;
  constexpr int M = ${size[0]}, N = ${size[1]}, K = ${size[2]}, pitch = N + ${padding[2]};
  const int row = group.y * ${tile[0]}, column = group.x * ${tile[1]};
  ${operands.map((each) => declareMemory(each, product)).join(" ")}
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(${tile[0]}, ${tile[1]}, ${depth}, ${transposed[0]},
      ${transposed[1]}, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
  mpp::tensor_ops::matmul2d<shape, execution_simdgroups<${groups}>> op;
  auto out_all = tensor(out, dextents<int32_t, 2>(N, M), array<int, 2>({1, pitch}));
  auto out_tile = out_all.slice(column, row);
  ${result === "memory" ? "" : start}
  ${loop}
  ${results[result]}
}
`;
}

/** The type of an operand's tile, before the tile is created. */
function typeOfTile({ name, type, form }: Operand): string {
  if (form === "device" || form === "sliced") return `tensor<device ${type}, dextents<int32_t, 2>, tensor_inline>`;
  if (form === "threadgroup") return `tensor<threadgroup ${type}, dextents<int32_t, 2>, tensor_inline>`;
  return `decltype(op)::cooperative_tensor_${name}_input_t<L, R, D>`;
}
