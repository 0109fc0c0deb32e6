import type { Implementation } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { launch, metalTypeOf, noFloat64, reads, startOf, writes } from "../../backend/metal/launch.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import { bytesOf, type DType, isFloat } from "../../tensor/dtype.ts";
import { elementCount, type LoopNest } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import {
  type ExtremumName,
  type FoldName,
  type ReductionAttributes,
  type ReductionName,
  reductionNames,
} from "./names.ts";
import { type ReductionNests, reductionNests } from "./nests.ts";

const MAX_RANK = 8;
const THREADS = 256;
/** Elements that one thread adds up at most: with the tree over threads, the error stays that of pairwise summation. */
const SEQUENCE = 64;
/** Of the largest state: a 64-bit number and three floats, aligned. */
const STATE_BYTES = 24;

/** How threads share results: `COLUMNS` and `LANES` of `kernels/reduction/groups.h`. */
interface Grouping {
  readonly columns: number;
  readonly lanes: number;
}

/** One pass: `count` elements or states of each of `results` results become `chunks` states, or the result where that is 1. */
interface Pass extends Grouping {
  readonly results: number;
  readonly count: number;
  readonly chunk: number;
  readonly chunks: number;
}

/** States of one pass, of which the next one makes fewer. */
interface States {
  readonly tensors: readonly Tensor[];
  readonly count: number;
}

export const foldMetal = (name: FoldName): Implementation<ReductionAttributes> => ({
  unsupported: noFloat64,
  run({ inputs: [input], outputs: [output], attributes }) {
    const state = isFloat(input!.dtype) ? "float32" : "int64";
    const fields = name === "var" || name === "std" ? 4 : name === "logsumexp" ? 2 : 1;
    const [In, Out, Number_] = [input!.dtype, output!.dtype, state as DType].map(metalTypeOf);
    runPasses(name, input!, [output!], attributes, false, {
      file: "reduction/fold.metal",
      kernels: {
        elements: { results: `fold_${In}_${Out}`, states: `fold_partial_${In}` },
        states: { results: `merge_${Number_}_${Out}`, states: `merge_partial_${Number_}` },
      },
      allocate: (count) => [scratch([fields * count], state)],
    });
  },
});

export const extremumMetal = (name: ExtremumName): Implementation<ReductionAttributes> => ({
  unsupported: noFloat64,
  run({ inputs: [input], outputs, attributes }) {
    const state = isFloat(input!.dtype) ? "float32" : "int64";
    const [In, Number_] = [input!.dtype, state as DType].map(metalTypeOf);
    runPasses(name, input!, outputs, attributes, true, {
      file: "reduction/extremum.metal",
      kernels: {
        elements: { results: `extremum_${In}`, states: `extremum_partial_${In}` },
        states: { results: `extremum_merge_${In}`, states: `extremum_merge_partial_${Number_}` },
      },
      allocate: (count) => [scratch([count], state), scratch([count], "int64")],
    });
  },
});

/** Memory of the device for the time of a call. */
function scratch(shape: readonly number[], dtype: DType): Tensor {
  return new Tensor(new Storage(new MetalMemory(metalContext(), elementCount(shape) * bytesOf(dtype))), dtype, shape);
}

interface Passes {
  readonly file: string;
  /** Host names: what is read, and what is written. */
  readonly kernels: Readonly<Record<"elements" | "states", Readonly<Record<"results" | "states", string>>>>;
  /** Memory for so many states. */
  readonly allocate: (count: number) => Tensor[];
}

/** Passes until there is one state a result: each reads what the one before it left. */
function runPasses(
  name: ReductionName,
  input: Tensor,
  outputs: readonly Tensor[],
  { axes, parameter }: ReductionAttributes,
  isOrdered: boolean,
  { file, kernels, allocate }: Passes,
): void {
  const nests = reductionNests(input, axes, isOrdered);
  const results = elementCount(nests.kept.shape);
  const total = elementCount(nests.reduced.shape);
  let from: States | undefined;
  do {
    const pass: Pass = from ? passOver(results, from.count, false) : passOver(results, total, isSideBySide(nests));
    const isLast = pass.chunks === 1;
    const to = isLast ? outputs : allocate(results * pass.chunks);
    launch({
      file,
      name: kernels[from ? "states" : "elements"][isLast ? "results" : "states"],
      constants: [reductionNames.indexOf(name), pass.columns, pass.lanes],
      operands: [...(from?.tensors ?? [input]).map(reads), ...to.map(writes)],
      parameters: parametersOf(input, nests, pass, total, parameter),
      threadgroups: [Math.ceil(results / pass.columns), pass.chunks],
      threadgroup: pass.columns * pass.lanes,
      threadgroupMemory: [THREADS * STATE_BYTES],
    });
    for (const tensor of from?.tensors ?? []) tensor.dispose();
    from = isLast ? undefined : { tensors: to, count: pass.chunks };
  } while (from);
}

/** Whether adjacent results are made of adjacent elements, and those of one result are not adjacent. */
const isSideBySide = ({ kept, reduced }: ReductionNests): boolean =>
  Math.abs(kept.strides[0]!.at(-1) ?? 0) === 1 && Math.abs(reduced.strides[0]!.at(-1) ?? 0) !== 1;

function passOver(results: number, count: number, sideBySide: boolean): Pass {
  const { columns, lanes } = groupingOf(count, sideBySide);
  const chunk = lanes * SEQUENCE;
  return { columns, lanes, results, count, chunk, chunks: Math.max(1, Math.ceil(count / chunk)) };
}

function groupingOf(count: number, sideBySide: boolean): Grouping {
  if (count <= 4) return { columns: THREADS, lanes: 1 };
  if (sideBySide) return { columns: 32, lanes: THREADS / 32 };
  return count <= 32 * SEQUENCE ? { columns: THREADS / 32, lanes: 32 } : { columns: 1, lanes: THREADS };
}

/** `ReductionParameters`. */
function parametersOf(input: Tensor, { kept, reduced }: ReductionNests, pass: Pass, total: number, parameter: number) {
  const words = new BigInt64Array(5 * MAX_RANK + 9);
  const put = (at: number, numbers: readonly number[]) => {
    for (const [index, value] of numbers.entries()) words[at + index] = BigInt(value);
  };
  const rank = (nest: LoopNest) => nest.shape.length;
  put(0, kept.shape);
  put(MAX_RANK, kept.strides[0]!);
  put(2 * MAX_RANK, kept.strides[1]!);
  put(3 * MAX_RANK, reduced.shape);
  put(4 * MAX_RANK, reduced.strides[0]!);
  put(5 * MAX_RANK, [rank(kept), rank(reduced), startOf(input)]);
  put(5 * MAX_RANK + 3, [pass.results, pass.count, pass.chunk, pass.chunks, total]);
  new Float32Array(words.buffer)[2 * (5 * MAX_RANK + 8)] = parameter;
  return new Uint8Array(words.buffer);
}
