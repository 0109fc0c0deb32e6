/**
 * Kernels as people write them, with drawn sizes and types, and the mistakes that people make in each: a part that is
 * removed or changed, and the kinds of finding that report it. Every barrier, bound and atomic in them is needed.
 */
import type { Random } from "../../../ops/samples.ts";
import { atomicLargest, ballot, quads, structures, table, template, views } from "./helpers.ts";
import type { Program } from "./program.ts";
import { bitonicSort, histogram, largest, scan, simdReduction, softmaxRow, treeReduction } from "./rounds.ts";
import { columnSums, layerNorm, onlineSoftmax, pooling, rotary, sparseRows, tileOfRows } from "./rows.ts";
import { compaction, elementwise, gather, total, unpacking, vectors, window } from "./separate.ts";
import { halo, lanes, matrices, neighbors, product, throughDevice, transpose, twoTiles } from "./shared.ts";

/** Every kind of program. */
export const programs: readonly ((random: Random) => Program)[] = [
  elementwise,
  neighbors,
  treeReduction,
  simdReduction,
  histogram,
  total,
  transpose,
  product,
  scan,
  bitonicSort,
  throughDevice,
  gather,
  vectors,
  window,
  lanes,
  matrices,
  largest,
  softmaxRow,
  halo,
  compaction,
  twoTiles,
  unpacking,
  layerNorm,
  rotary,
  sparseRows,
  pooling,
  onlineSoftmax,
  columnSums,
  tileOfRows,
  template,
  structures,
  atomicLargest,
  ballot,
  table,
  quads,
  views,
];
