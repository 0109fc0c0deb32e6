import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, launchBatch, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { MAX_SIZE, SERIAL } from "../metal.ts";
import { factorWork, fasterOnCpu } from "../route.ts";
import { factorizeBlocks, solveBlocks } from "./blocks.metal.ts";
import {
  type LuFactorAttributes,
  type LuPermutationAttributes,
  type LuSolveAttributes,
  luFactorParameters,
  luPermutationParameters,
  luSolveParameters,
  solveParameters,
} from "./primitive.ts";

const file = "linalg/lu.metal";

/** Threads of a threadgroup that holds a matrix of this size: about four elements or more per thread. */
const threadsOf = (size: number): number => (size <= 8 ? 32 : size <= 16 ? 64 : size <= 32 ? 128 : 256);

export const luFactorMetal: MetalImplementation<LuFactorAttributes, [Tensor], [Tensor, Tensor, Tensor]> = {
  unsupported(call) {
    const [a] = call.inputs;
    return noFloat64(call) ?? fasterOnCpu("lu", Math.max(...a.shape.slice(-2)) > MAX_SIZE, factorWork(a));
  },
  run({ inputs: [a], outputs: [lu, pivots, info], attributes }) {
    const { batch, ...given } = matricesOf(a);
    const sizes = { batch, ...(a.size === 0 ? { rows: 0, columns: 0 } : given) };
    if (Math.max(sizes.rows, sizes.columns) > MAX_SIZE) return factorizeBlocks(a, lu, pivots, info, attributes.pivot);
    return launchBatch(sizes.batch, SERIAL * factorWork(a), (count) => ({
      file,
      name: "lu_factor",
      operands: [reads(a), writes(lu), writes(pivots), writes(info)],
      parameters: luFactorParameters.bytes({ ...sizes, batch: count, ...attributes }),
      threadgroups: [count],
      threadgroup: threadsOf(Math.max(sizes.rows, sizes.columns)),
    }));
  },
};

export const luSolveMetal: MetalImplementation<LuSolveAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  unsupported(call) {
    const { batch, rows, columns } = matricesOf(call.inputs[2]);
    return noFloat64(call) ?? fasterOnCpu("lu", rows > MAX_SIZE, batch * rows ** 2 * columns);
  },
  run({ inputs: [lu, pivots, b], outputs: [x], attributes }) {
    const { batch, rows: size, columns } = matricesOf(b);
    if (size > MAX_SIZE) return solveBlocks(lu, pivots, b, x, attributes.adjoint);
    return launchBatch(batch, SERIAL * batch * size ** 2 * columns, (count) => ({
      file,
      name: "lu_solve",
      operands: [reads(lu), reads(pivots), reads(b), writes(x)],
      parameters: luSolveParameters.bytes({ batch: count, size, columns, ...attributes }),
      threadgroups: [count],
      threadgroup: threadsOf(size),
    }));
  },
};

export const solveMetal: MetalImplementation<undefined, [Tensor, ...Tensor[]], [Tensor, Tensor, Tensor, Tensor]> = {
  unsupported(call) {
    const [a] = call.inputs;
    return noFloat64(call) ?? fasterOnCpu("lu", lastElement(a.shape) > MAX_SIZE, factorWork(a));
  },
  run({ inputs: [a, b], outputs: [x, info, lu, pivots] }) {
    const { batch, rows: size, columns } = matricesOf(x);
    if (size > MAX_SIZE) {
      using scratchLu = lu ? undefined : scratchTensor(a.shape, "float32");
      using scratchPivots = pivots ? undefined : scratchTensor(a.shape.slice(0, -1), "int32");
      const factors = [lu ?? scratchLu, pivots ?? scratchPivots] as const;
      return spanOf([factorizeBlocks(a, ...factors, info, true), solveBlocks(...factors, b, x, false)]);
    }
    const factor = lu && pivots ? [writes(lu), writes(pivots)] : [];
    return launchBatch(batch, SERIAL * batch * size ** 2 * (size + columns), (count) => ({
      file,
      name: b ? (lu ? "solve_keeping" : "solve") : "invert",
      operands: [reads(a), ...(b ? [reads(b)] : []), writes(x), writes(info), ...factor],
      parameters: solveParameters.bytes({ batch: count, size, columns }),
      threadgroups: [count],
      threadgroup: threadsOf(size),
    }));
  },
};

export const luPermutationMetal: MetalImplementation<LuPermutationAttributes, [Tensor], [Tensor]> = {
  run({ inputs: [pivots], outputs: [permutation], attributes }) {
    const { batch, columns } = matricesOf(pivots);
    const rows = lastElement(permutation.shape);
    return launch({
      file,
      name: "lu_permutation",
      operands: [reads(pivots), writes(permutation)],
      parameters: luPermutationParameters.bytes({ batch, rows, pivots: columns, ...attributes }),
      grid: [batch],
      threadgroup: 32,
    });
  },
};
