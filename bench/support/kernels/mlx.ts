/**
 * MLX's kernels (0.32), for comparison with ours: their names, grids and arguments, which match the choices of MLX's
 * host code for a GPU with few cores. The folder is a checkout of MLX.
 */
import { bytesOf, type FloatDType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import {
  type Constants,
  float,
  int,
  ints,
  long,
  longs,
  type PeerCase,
  type PeerLaunch,
  packed,
  scratch,
} from "./peers.ts";

const KERNELS = "mlx/backend/metal/kernels";
const short = { float32: "f32", float16: "f16" } as const;
type Counted = keyof typeof short;
const ceil = (value: number, step: number): number => Math.ceil(value / step);

// ---------------------------------------------------------------- products

/**
 * Products with few 16 × 16 tiles are split along k. Arguments: buffers a, b and parts (float32); a struct of ints: m,
 * n, k, the row strides of a, b and a part, tiles across and down, the number of parts, their distance and length, the
 * permutation of tiles, the steps of a part. A second kernel adds the parts: parts, out, their number, their distance,
 * the row stride of out.
 */
function splitProduct(
  m: number,
  n: number,
  k: number,
  dtype: Counted,
  [a, b]: readonly Tensor[],
  out: Tensor,
): PeerLaunch[] {
  const [bm, bn, bk] = [m < 40 ? 16 : 32, n < 40 ? 16 : 32, 16];
  const wanted = Math.floor(k / 16 / (ceil(m, 32) * ceil(n, 32)));
  const splits = Math.min(Math.max(2, wanted <= 1 ? 1 : 2 ** Math.ceil(Math.log2(wanted))), 32);
  const steps = Math.floor(k / bk / splits);
  const aligned = m % bm === 0 && n % bn === 0 ? "t" : "n";
  const parts = scratch([splits, m, n], "float32");
  const struct = ints(m, n, k, k, n, n, ceil(n, bn), ceil(m, bm), splits, m * n, steps * bk, 0, steps);
  const file = `${KERNELS}/steel/gemm/kernels/steel_gemm_splitk.metal`;
  return [
    {
      file,
      name: `steel_gemm_splitk_nn_${dtype}_float32_bm${bm}_bn${bn}_bk${bk}_wm2_wn2_MN_${aligned}aligned_K_taligned`,
      arguments: { 0: a, 1: b, 2: parts, 3: packed(...struct) },
      threadgroups: [ceil(n, bn), ceil(m, bm), splits],
      threadgroup: [32, 2, 2],
    },
    {
      file,
      name: `steel_gemm_splitk_accum_${dtype}_float32`,
      arguments: { 0: parts, 1: out, 2: int(splits), 3: int(m * n), 4: int(n) },
      grid: [n, m, 1],
      threadgroup: [Math.min(n, 32), Math.min(m, 32), 1],
    },
  ];
}

/**
 * Other products have tiles of 64 × 64. Arguments: buffers a, b, out (3) and a struct (4): m, n, k, row strides, tiles
 * across and down as ints, the strides of matrices of a batch as longs, the permutation of tiles, whole steps of k,
 * axes of the batch as ints.
 */
function wholeProduct(
  m: number,
  n: number,
  k: number,
  dtype: Counted,
  [a, b]: readonly Tensor[],
  out: Tensor,
): PeerLaunch[] {
  const [bm, bn, bk, wm, wn] = dtype === "float32" ? [64, 64, 16, 2, 2] : [64, 64, 16, 1, 2];
  const tiles = [ceil(n, bn), ceil(m, bm)] as const;
  const struct = [
    ...ints(m, n, k, k, n, n, ...tiles),
    ...longs(m * k, k * n, m * n),
    ...ints(0, Math.floor(k / bk), 0),
  ];
  const constants: Constants = {
    10: false,
    100: false,
    110: false,
    200: m % bm === 0,
    201: n % bn === 0,
    202: k % bk === 0,
  };
  return [
    {
      file: `${KERNELS}/steel/gemm/kernels/steel_gemm_fused.metal`,
      name: `steel_gemm_fused_nn_${dtype}_${dtype}_bm${bm}_bn${bn}_bk${bk}_wm${wm}_wn${wn}`,
      constants,
      arguments: { 0: a, 1: b, 3: out, 4: packed(...struct) },
      threadgroups: [...tiles, 1],
      threadgroup: [32, wn, wm],
    },
  ];
}

/**
 * A row times a matrix. Arguments: buffers matrix, vector, out (3), their lengths, the matrix's row stride, a batch of
 * one (9 to 12). The addends of the product (2, 7, 8, 13, 14) are bound, but not read.
 */
function rowProduct(
  n: number,
  k: number,
  dtype: Counted,
  [vector, matrix]: readonly Tensor[],
  out: Tensor,
): PeerLaunch[] {
  const [sm, sn] = k >= 8192 && n >= 2048 ? [4, 8] : [8, 4];
  const bn = n >= 2048 ? 16 : n >= 512 ? 4 : 2;
  return [
    {
      file: `${KERNELS}/gemv.metal`,
      name: `gemv_t_${dtype}_bm1_bn${bn}_sm${sm}_sn${sn}_tm4_tn4_nc0_axpby0`,
      arguments: {
        0: matrix,
        1: vector,
        2: out,
        3: out,
        4: int(k),
        5: int(n),
        6: int(n),
        7: float(1),
        8: float(0),
        9: int(1),
        10: int(1),
        11: long(0),
        12: long(0),
        13: long(0),
        14: int(1),
      },
      threadgroups: [ceil(n, bn * sn * 4), 1, 1],
      threadgroup: [32, bn, 1],
    },
  ];
}

function products(dtype: Counted): PeerCase[] {
  const shapes: readonly (readonly [number, number, number])[] = [
    ...([256, 512] as const).map((side) => [side, side, side] as const),
    ...([1, 2, 4, 8, 16, 32, 64] as const).map((rows) => [rows, 1024, 1024] as const),
    [8, 4096, 1024] as const,
    [8, 1024, 4096] as const,
  ];
  return shapes.map(([m, n, k]) => ({
    name: `product ${m}x${n}x${k} ${short[dtype]}`,
    shape: [m, n],
    dtype,
    launches(operands, out) {
      if (m === 1) return rowProduct(n, k, dtype, operands, out);
      const isCut = ceil(m, 16) * ceil(n, 16) <= 1024 && k >= Math.max(m, n);
      return (isCut ? splitProduct : wholeProduct)(m, n, k, dtype, operands, out);
    },
  }));
}

// ---------------------------------------------------------------- attention

/**
 * Tiles of 32 queries and 32 keys. Arguments: buffers q, k, v, out and a struct: batch, heads, D, lengths, query heads
 * per key head as ints, the scale, blocks of queries and keys, complete blocks, the remainders, the position of the
 * first query as ints, and the strides of batches, heads and rows of q, k, v and out as longs.
 */
function attentionCase(length: number, causal: boolean, dtype: Counted): PeerCase {
  const blocks = ceil(length, 32);
  const strides = longs(length * 64, length * 64, 64);
  const struct = packed(
    ...ints(1, 1, 64, length, length, 1),
    ["float", 1 / 8] as const,
    ...ints(blocks, blocks, Math.floor(length / 32), Math.floor(length / 32), length % 32, length % 32, 0),
    ...strides,
    ...strides,
    ...strides,
    ...strides,
  );
  const aligned = length % 32 === 0;
  return {
    name: `attention ${length}${causal ? " causal" : ""} ${short[dtype]}`,
    shape: [1, 1, length, 64],
    dtype,
    launches: ([q, k, v], out) => [
      {
        file: `${KERNELS}/steel/attn/kernels/steel_attention.metal`,
        name: `steel_attention_${dtype}_bq32_bk32_bd64_wm4_wn1_mask${dtype}`,
        constants: { 200: aligned, 201: aligned, 300: false, 301: causal, 302: false },
        arguments: { 0: q, 1: k, 2: v, 3: out, 4: struct },
        threadgroups: [blocks, 1, 1],
        threadgroup: [32, 4, 1],
      },
    ],
  };
}

/** One query and 4,096 keys in 32 parts: each part's sums, totals and maxima, which a second kernel merges. */
function decodeCase(dtype: Counted): PeerCase {
  const [keys, parts] = [4096, 32];
  const type = dtype === "float32" ? "float" : "float16_t";
  return {
    name: `decode 1x${keys} ${short[dtype]}`,
    shape: [1, 1, 1, 64],
    dtype,
    launches([q, k, v], out) {
      const [rows, sums, most] = [
        scratch([parts, 64], dtype),
        scratch([parts], "float32"),
        scratch([parts], "float32"),
      ];
      const file = `${KERNELS}/scaled_dot_product_attention.metal`;
      return [
        {
          file,
          name: `sdpa_vector_2pass_1_${type}_64_64`,
          constants: { 20: false, 21: false, 22: false, 23: false, 24: false, 25: false, 26: parts },
          arguments: {
            0: q,
            1: k,
            2: v,
            3: rows,
            4: sums,
            5: most,
            7: int(keys),
            8: long(keys * 64),
            9: long(64),
            10: long(keys * 64),
            11: long(64),
            12: float(1 / 8),
          },
          threadgroups: [1, 1, parts],
          threadgroup: [32, 1, 1],
        },
        {
          file,
          name: `sdpa_vector_2pass_2_${type}_64`,
          arguments: { 0: rows, 1: sums, 2: most, 3: out, 4: int(parts) },
          threadgroups: [1, 1, 1],
          threadgroup: [1024, 1, 1],
        },
      ] as const;
    },
  };
}

// ---------------------------------------------------------------- rows

/**
 * A threadgroup per row, with this many elements per thread; rows above a limit are processed by 1,024 threads in
 * several rounds.
 */
function rowThreads(
  width: number,
  elements = 4,
  limit = 4096,
): { readonly isLooped: boolean; readonly threads: number } {
  const isLooped = width > limit;
  return { isLooped, threads: isLooped ? 1024 : 32 * ceil(ceil(width, elements), 32) };
}

const rowShape = (rows: number, threads: number) =>
  ({ grid: [rows * threads, 1, 1], threadgroup: [threads, 1, 1] }) as const;

function rowCases(dtype: Counted, [rows, width]: readonly [number, number]): PeerCase[] {
  const { isLooped, threads } = rowThreads(width);
  const layer = rowThreads(width, 8, 6656);
  const common = { shape: [rows, width], dtype } as const;
  const shape = rowShape(rows, threads);
  const label = `${rows}x${width} ${short[dtype]}`;
  return [
    {
      ...common,
      name: `rmsNorm ${label}`,
      launches: ([x, weight], out) => [
        {
          ...shape,
          file: `${KERNELS}/rms_norm.metal`,
          name: `rms${isLooped ? "_looped" : ""}${dtype}`,
          arguments: { 0: x, 1: weight, 2: out, 3: float(1e-5), 4: int(width), 5: int(1) },
        },
      ],
    },
    {
      ...common,
      name: `layerNorm ${label}`,
      launches: ([x, weight, bias], out) => [
        {
          ...rowShape(rows, layer.threads),
          file: `${KERNELS}/layer_norm.metal`,
          name: `layer_norm${layer.isLooped ? "_looped" : ""}${dtype}`,
          arguments: { 0: x, 1: weight, 2: bias, 3: out, 4: float(1e-5), 5: int(width), 6: int(1), 7: int(1) },
        },
      ],
    },
    {
      ...common,
      name: `softmax ${label}`,
      launches: ([x], out) => [
        {
          ...shape,
          file: `${KERNELS}/softmax.metal`,
          name: `${isLooped ? "looped" : "block"}_softmax_${dtype}`,
          arguments: { 0: x, 1: out, 2: int(width) },
        },
      ],
    },
  ];
}

// ---------------------------------------------------------------- elements

/** Each thread computes 8 bytes of the result. */
function elementCases(dtype: Counted): PeerCase[] {
  const count = 2 ** 18;
  const shape = [count];
  const grid = { grid: count / (8 / bytesOf(dtype)), threadgroup: 1024 };
  const other: FloatDType = dtype === "float32" ? "float16" : "float32";
  const dtypeName = short[dtype];
  return [
    {
      name: `exp 2^18 ${dtypeName}`,
      shape,
      dtype,
      launches: ([x], out) => [
        {
          ...grid,
          file: `${KERNELS}/unary.metal`,
          name: `vn_Exp${dtype}${dtype}`,
          arguments: { 0: x, 1: out, 2: int(count) },
        },
      ],
    },
    {
      name: `add 2^18 ${dtypeName}`,
      shape,
      dtype,
      launches: ([a, b], out) => [
        {
          ...grid,
          file: `${KERNELS}/binary.metal`,
          name: `vvn_Add${dtype}`,
          arguments: { 0: a, 1: b, 2: out, 3: int(count) },
        },
      ],
    },
    {
      name: `cast to ${short[other as Counted]} 2^18 ${dtypeName}`,
      shape,
      dtype: other,
      launches: ([x], out) => [
        {
          grid: count / (8 / bytesOf(other)),
          threadgroup: 1024,
          file: `${KERNELS}/copy.metal`,
          name: `vn_copy${dtype}${other}`,
          arguments: { 0: x, 1: out, 2: int(count) },
        },
      ],
    },
  ];
}

// ---------------------------------------------------------------- orders and rotations

/** Values, then indices. Arguments: x, out, the length, and the strides of elements and rows of both. */
function sortCase(dtype: Counted): PeerCase {
  const [rows, width] = [64, 1024];
  const file = `${KERNELS}/sort.metal`;
  const sizes = { 2: int(width), 3: int(1), 4: int(1), 5: int(width), 6: int(width) };
  const shape = { threadgroups: [1, rows, 1], threadgroup: [256, 1, 1] } as const;
  return {
    name: `sort ${rows}x${width} ${short[dtype]}`,
    shape: [rows, width],
    dtype,
    launches: ([x], out) => [
      {
        ...shape,
        file,
        name: `c_block_sort_${dtype}_${dtype}_bn256_tn4`,
        arguments: { 0: x, 1: out, ...sizes },
      },
      {
        ...shape,
        file,
        name: `carg_block_sort_${dtype}_uint32_bn256_tn4`,
        arguments: { 0: x, 1: scratch([rows, width], "float32"), ...sizes }, // the elements have four bytes each
      },
    ],
  };
}

/**
 * Arguments: x, out, the first position, a scale, strides of both and of the positions, heads; at index 10 log2 of the
 * base.
 */
function ropeCase(dtype: Counted): PeerCase {
  const [heads, length, dim] = [8, 128, 64];
  const strides = packed(...longs(length * dim, dim, 1));
  return {
    name: `rope ${heads}x${length}x${dim} ${short[dtype]}`,
    shape: [1, heads, length, dim],
    dtype,
    launches: ([x], out) => [
      {
        file: `${KERNELS}/rope.metal`,
        name: `rope_${dtype}`,
        constants: { 1: true, 2: false, 3: false }, // forward; halves of a row; heads are not grouped
        arguments: {
          0: x,
          1: out,
          2: int(0),
          3: float(1),
          4: strides,
          5: strides,
          6: long(0),
          7: int(heads),
          10: float(Math.log2(10000)),
        },
        grid: [dim / 2, length, heads / 4],
        threadgroup: [32, 16, 2],
      },
    ],
  };
}

export const mlxCases = (): PeerCase[] =>
  (["float32", "float16"] as const).flatMap((dtype) => [
    ...products(dtype),
    ...[256, 512].flatMap((length) => [false, true].map((causal) => attentionCase(length, causal, dtype))),
    decodeCase(dtype),
    ...(
      [
        [256, 1024],
        [64, 8192],
      ] as const
    ).flatMap((shape) => rowCases(dtype, shape)),
    ...elementCases(dtype),
    sortCase(dtype),
    ropeCase(dtype),
  ]);
