import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, startOf, writes } from "../../backend/metal/launch.ts";
import { nestValues } from "../../backend/metal/loop.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { FoldName } from "./folds.ts";
import { type ReductionNests, reductionNests } from "./loop_nests.ts";
import {
  type ExtremumName,
  type ReductionAttributes,
  type ReductionName,
  reductionParameters,
  reductions,
} from "./primitive.ts";

const THREADS = 256;
/**
 * Maximum number of elements that a thread adds up. With the tree over threads, errors are as in pairwise summation.
 */
const SEQUENCE = 64;
/** Bytes of the largest state: a 64-bit number and four floats. */
const STATE_BYTES = 24;

/** Number of fields of float states that have more than one: `fields` of `kernels/reduction/folds.h`. */
const stateFields: Readonly<Partial<Record<FoldName, number>>> = {
  var: 5,
  std: 5,
  prod: 5,
  normP: 5,
  mean: 2,
  norm2: 2,
  logsumexp: 2,
};

/** How threads share results: `COLUMNS` and `LANES` of `kernels/reduction/groups.h`. */
interface Grouping {
  readonly columns: number;
  readonly lanes: number;
}

/** One pass: `count` elements or states of each result become `chunks` states, or the result if `chunks` is 1. */
interface Pass extends Grouping {
  readonly count: number;
  readonly chunk: number;
  readonly chunks: number;
}

/** States written by one pass, which the next pass reduces further. */
interface States {
  readonly tensors: readonly Tensor[];
  readonly count: number;
}

export const foldMetal = (name: FoldName): MetalImplementation<ReductionAttributes, [Tensor], [Tensor]> => ({
  unsupported: noFloat64,
  run({ inputs: [input], outputs: [output], attributes }) {
    const state = isFloat(input.dtype) ? "float32" : "int64";
    const fields = state === "float32" ? (stateFields[name] ?? 1) : 1;
    const [In, Out, Number_] = [input.dtype, output.dtype, state as DType].map(metalTypeOf);
    return runPasses(name, input, [output], attributes, false, {
      file: "reduction/fold.metal",
      kernels: {
        elements: { results: `fold_${In}_${Out}`, states: `fold_partial_${In}` },
        states: { results: `merge_${Number_}_${Out}`, states: `merge_partial_${Number_}` },
      },
      allocate: (count) => [scratchTensor([fields * count], state)],
    });
  },
});

export const extremumMetal = (name: ExtremumName): MetalImplementation<ReductionAttributes> => ({
  unsupported: noFloat64,
  run({ inputs: [input], outputs, attributes }) {
    const state = isFloat(input.dtype) ? "float32" : "int64";
    const [In, Number_] = [input.dtype, state as DType].map(metalTypeOf);
    return runPasses(name, input, outputs, attributes, true, {
      file: "reduction/extremum.metal",
      kernels: {
        elements: { results: `extremum_${In}`, states: `extremum_partial_${In}` },
        states: { results: `extremum_merge_${In}`, states: `extremum_merge_partial_${Number_}` },
      },
      allocate: (count) => [scratchTensor([count], state), scratchTensor([count], "int64")],
    });
  },
});

interface Passes {
  readonly file: string;
  /** Host names of kernels by what they read and what they write. */
  readonly kernels: Readonly<Record<"elements" | "states", Readonly<Record<"results" | "states", string>>>>;
  /** Allocates memory for `count` states. */
  readonly allocate: (count: number) => Tensor[];
}

/** Runs passes until there is one state for each result. Each pass reads the states of the previous one. */
function runPasses(
  name: ReductionName,
  input: Tensor,
  outputs: readonly Tensor[],
  { axes, parameter }: ReductionAttributes,
  isOrdered: boolean,
  { file, kernels, allocate }: Passes,
): TicketRange {
  const nests = reductionNests(input, axes, isOrdered);
  const kept = nestValues(nests.kept, [startOf(input), 0]);
  const reduced = nestValues(nests.reduced, [0]);
  let launched: TicketRange | undefined;
  let from: States | undefined;
  do {
    const pass = from ? passOver(from.count, false) : passOver(reduced.count, isSideBySide(nests));
    const { columns, lanes, count, chunk, chunks } = pass;
    const isLast = chunks === 1;
    const to = isLast ? outputs : allocate(kept.count * chunks);
    const tickets = launch({
      file,
      name: kernels[from ? "states" : "elements"][isLast ? "results" : "states"],
      constants: [reductions.ordinal(name), columns, lanes],
      operands: [...(from?.tensors ?? [input]).map(reads), ...to.map(writes)],
      parameters: reductionParameters.bytes({ kept, reduced, count, chunk, chunks, parameter }),
      threadgroups: [Math.ceil(kept.count / columns), chunks],
      threadgroup: columns * lanes,
      threadgroupMemory: [THREADS * STATE_BYTES],
    });
    launched = spanOf([launched, tickets]);
    for (const tensor of from?.tensors ?? []) tensor.dispose();
    from = isLast ? undefined : { tensors: to, count: chunks };
  } while (from);
  return launched;
}

/** Whether adjacent results reduce adjacent elements, while the elements of one result are not adjacent. */
const isSideBySide = ({ kept, reduced }: ReductionNests): boolean =>
  Math.abs(kept.strides[0].at(-1) ?? 0) === 1 && Math.abs(reduced.strides[0].at(-1) ?? 0) !== 1;

function passOver(count: number, sideBySide: boolean): Pass {
  const { columns, lanes } = groupingOf(count, sideBySide);
  const chunk = lanes * SEQUENCE;
  return { columns, lanes, count, chunk, chunks: Math.max(1, Math.ceil(count / chunk)) };
}

function groupingOf(count: number, sideBySide: boolean): Grouping {
  if (count <= 4) return { columns: THREADS, lanes: 1 };
  if (sideBySide) return { columns: 32, lanes: THREADS / 32 };
  return count <= 32 * SEQUENCE ? { columns: THREADS / 32, lanes: 32 } : { columns: 1, lanes: THREADS };
}
