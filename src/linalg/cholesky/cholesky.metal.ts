import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { type Launch, launch, launchBatch, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { isTransposed, matricesOf } from "../matrices.ts";
import { BLOCK, MAX_SIZE, SERIAL, TILE_ROWS, TILE_THREADS, threadsFor } from "../metal.ts";
import { factorWork, fasterOnCpu } from "../route.ts";
import { choleskyParameters, choleskyStepParameters } from "./primitive.ts";

export const choleskyMetal: MetalImplementation<undefined, [Tensor], [Tensor, Tensor]> = {
  unsupported(call) {
    const [a] = call.inputs;
    return noFloat64(call) ?? fasterOnCpu("cholesky", lastElement(a.shape) > MAX_SIZE, factorWork(a));
  },
  run({ inputs: [a], outputs: [factor, info] }) {
    const { batch, rows: size } = matricesOf(a);
    if (size > MAX_SIZE) return runBlocks(a, factor, info);
    return launchBatch(batch, SERIAL * factorWork(a), (count) => ({
      ...launchOf(size, count),
      file: "linalg/cholesky.metal",
      operands: [reads(a), writes(factor), writes(info)],
      parameters: choleskyParameters.bytes({ batch: count, size, upper: isTransposed(a) }),
    }));
  },
};

/** Threads per threadgroup for small matrices, one lane per row: SMALL_THREADS in the kernel. */
const SMALL_THREADS = 128;

/** The kernel and its threads. */
function launchOf(size: number, batch: number): Pick<Launch, "name" | "threadgroups" | "threadgroup"> {
  if (size > 32) return { name: "cholesky", threadgroups: [batch], threadgroup: threadsFor(size) };
  const lanes = size > 16 ? 32 : 16;
  const threadgroups = [Math.ceil((batch * lanes) / SMALL_THREADS)] as const;
  return { name: `cholesky_small_${lanes}`, threadgroups, threadgroup: SMALL_THREADS };
}

/** Two dispatches per block of columns, for any batch size. */
function runBlocks(a: Tensor, factor: Tensor, info: Tensor): TicketRange {
  const { batch, rows: size } = matricesOf(a);
  using diagonal = scratchTensor([batch, BLOCK, BLOCK], "float32");
  const upper = isTransposed(a);
  const both = { tensor: factor, access: "readwrite" } as const;
  const codes = { tensor: info, access: "readwrite" } as const;
  const step = (first: number) => {
    const parameters = choleskyStepParameters.bytes({ size, first, upper });
    const common = { file: "linalg/cholesky_blocks.metal", parameters };
    const below = Math.max(0, size - first - BLOCK);
    return [
      launch({
        ...common,
        name: "cholesky_update",
        operands: [reads(a), both, writes(diagonal), reads(info)],
        threadgroups: [Math.ceil((size - first) / TILE_ROWS), batch],
        threadgroup: TILE_THREADS,
      }),
      launch({
        ...common,
        name: "cholesky_panel",
        operands: [reads(diagonal), both, codes],
        threadgroups: [1 + Math.ceil(below / TILE_ROWS), batch],
        threadgroup: TILE_ROWS,
      }),
    ];
  };
  const steps = Array.from({ length: Math.ceil(size / BLOCK) }, (_, at) => step(at * BLOCK));
  const clear = launch({
    file: "linalg/cholesky_blocks.metal",
    name: "cholesky_clear",
    operands: [reads(info), writes(factor)],
    parameters: choleskyStepParameters.bytes({ size, first: 0, upper }),
    grid: [size, size, batch],
    threadgroup: [32, 8, 1],
  });
  return spanOf([...steps.flat(), clear]);
}
