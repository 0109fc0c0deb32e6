/** Loop nests for kernels (`kernels/common/loop.h`), and the grid of kernels with one thread per element. */
import { getOrMake, lastElement } from "../../core/collections.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { reachOf } from "../../tensor/reach.ts";
import {
  broadcastStrides,
  collapse,
  elementCount,
  type LoopNest,
  MAX_RANK,
  type Shape,
  sameShape,
} from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { array, whole } from "../fields.ts";
import { startOf } from "./launch.ts";
import { type Struct, struct } from "./struct.ts";

const MAX_OPERANDS = 4;
const THREADS = 256;
/** Threads per row of the grid: a coordinate has only 32 bits, and an element's index may need more. */
const ROW = 2 ** 30;

/**
 * Returns the grid of a kernel with one thread for each of `count` elements. `loop_element` of `kernels/common/loop.h`
 * returns the index.
 */
export const elementGrid = (count: number) => ({
  grid: [Math.min(count, ROW), Math.ceil(count / ROW)] as const,
  threadgroup: [Math.min(count, THREADS)] as const,
});

/** An operand, and its strides in the loop. */
export interface LoopOperand {
  readonly tensor: Tensor;
  readonly strides: readonly number[];
}

/** The values of a `Nest` of `kernels/common/loop.h`. */
export interface NestValues extends LoopNest {
  /** For each operand, the offset in elements of element (0, …, 0) from the element at which it is bound. */
  readonly start: readonly number[];
  readonly count: number;
  readonly rank: number;
}

const nests = new Map<number, Struct<NestValues>>();

/**
 * Returns a struct field for a loop nest over a number of operands: `Nest<operands>`, with the values of {@link
 * nestValues}.
 */
export const loopNestOf = (operands: number): Struct<NestValues> =>
  getOrMake(nests, operands, () =>
    struct(`Nest<${operands}>`, {
      shape: array(whole, MAX_RANK),
      strides: array(array(whole, MAX_RANK), operands, "operands"),
      start: array(whole, operands, "operands"),
      count: whole,
      rank: whole,
    }),
  );

/** Returns the values of a loop nest and the starts of its operands. */
export const nestValues = ({ shape, strides }: LoopNest, start: readonly number[]): NestValues => ({
  shape,
  strides,
  start,
  count: elementCount(shape),
  rank: shape.length,
});

/**
 * The loop of a kernel with one thread per element (`LoopNest`): up to four operands, the result last. Its values are
 * the `loop` of {@link broadcastLoop} and similar functions.
 */
export const loopNest = loopNestOf(MAX_OPERANDS);

/**
 * Returns the loop of an elementwise kernel: operands are broadcast to the output's shape, and axes are merged if all
 * operands allow it.
 */
export const broadcastLoop = (output: Tensor, inputs: readonly Tensor[]) =>
  mergedLoop(
    output.shape,
    [...inputs, output].map((tensor) => ({
      tensor,
      strides: broadcastStrides(tensor.shape, tensor.strides, output.shape),
    })),
  );

/** Elements per thread if it reads them in one access per operand: `run_width` of `kernels/common/runs.h`, or half. */
const RUN_WIDTHS = [8, 4] as const;

/**
 * As {@link broadcastLoop}, for kernels whose threads process runs of adjacent elements if the operands' layouts allow
 * it: eight if all elements have at most two bytes, else four. `runs` is their function constant.
 */
export function runLoop(output: Tensor, inputs: readonly Tensor[]): RunLoop {
  const operands = [...inputs, output];
  const isDense = operands.every((tensor) => sameShape(tensor.shape, output.shape) && tensor.isContiguous);
  if (!isDense) return newRunLoop(output, inputs);
  const layouts = operands.map((tensor) => `${Math.min(4, bytesOf(tensor.dtype))}${alignmentOf(tensor)}`);
  if (denseLoops.size === MOST_DENSE_LOOPS) denseLoops.clear();
  return getOrMake(denseLoops, `${output.size} ${layouts.join("")}`, () => {
    const made = newRunLoop(output, inputs);
    denseBytes.set(made.loop, loopNest.bytes(made.loop));
    return made;
  });
}

interface RunLoop extends ReturnType<typeof elementGrid> {
  readonly loop: NestValues;
  readonly runs: number;
}

/** The loops over contiguous operands of one shape, by what they depend on: programs repeat few of them. */
const denseLoops = new Map<string, RunLoop>();
const MOST_DENSE_LOOPS = 256;
const denseBytes = new WeakMap<NestValues, Uint8Array>();

/** Returns the bytes of a {@link loopNest}. */
export const loopBytes = (loop: NestValues): Uint8Array => denseBytes.get(loop) ?? loopNest.bytes(loop);

const alignmentOf = ({ offset }: Tensor): number => RUN_WIDTHS.find((width) => offset % width === 0) ?? 1;

function newRunLoop(output: Tensor, inputs: readonly Tensor[]): RunLoop {
  const { loop } = broadcastLoop(output, inputs);
  const operands = [...inputs, output];
  const isNarrow = operands.every(({ dtype }) => bytesOf(dtype) <= 2);
  const width =
    RUN_WIDTHS.find((candidate) => (candidate === 4 || isNarrow) && isInRuns(loop, operands, candidate)) ?? 1;
  return { loop, runs: runsOf(loop, width), ...elementGrid(Math.ceil(loop.count / width)) };
}

/** Whether runs of `width` elements along the last axis are one access, or one repeated element, in each operand. */
function isInRuns({ shape, strides }: NestValues, operands: readonly Tensor[], width: number): boolean {
  if (shape.length === 0 || !(shape.length === 1 || lastElement(shape) % width === 0)) return false;
  return operands.every((tensor, operand) => {
    const [along, ...outer] = strides[operand].toReversed();
    if (along === 0) return operand < operands.length - 1;
    return along === 1 && [reachOf(tensor).first, ...outer].every((distance) => distance % width === 0);
  });
}

/** Returns the bits of `RUNS`. */
function runsOf({ shape, strides }: NestValues, width: number): number {
  if (width === 1) return 1;
  const flat = shape.length === 1 ? 16 : 0;
  return strides.reduce((bits, steps, operand) => bits + (steps.at(-1) === 0 ? 32 * 2 ** operand : 0), width + flat);
}

/** Returns the loop over a shape. Axes are merged if all operands allow it. */
export const mergedLoop = (shape: Shape, operands: readonly LoopOperand[]) =>
  loopOf(
    collapse(
      shape,
      operands.map(({ strides }) => strides),
    ),
    operands,
  );

/** As {@link mergedLoop}, but without merging axes, for kernels that depend on them. */
export const plainLoop = (shape: Shape, operands: readonly LoopOperand[]) =>
  loopOf({ shape: [...shape], strides: operands.map(({ strides }) => [...strides]) }, operands);

function loopOf({ shape, strides }: LoopNest, operands: readonly LoopOperand[]) {
  const start = operands.map(({ tensor }) => startOf(tensor));
  const loop = nestValues({ shape, strides }, start);
  return { loop, ...elementGrid(loop.count) };
}
