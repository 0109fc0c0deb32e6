import type { Implementation } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import {
  type LuFactorAttributes,
  type LuPermutationAttributes,
  type LuSolveAttributes,
  luFactorCall,
  luPermutationCall,
  luSolveCall,
  solveCall,
} from "./primitive.ts";

export const luFactorCpu: Implementation<LuFactorAttributes, [Tensor], [Tensor, Tensor, Tensor]> = {
  run({ operation, inputs: [a], outputs: [lu, pivots, info], attributes }) {
    luFactorCall(operation, { dtype: a.dtype, ...matricesOf(a), ...attributes }, [a, lu, pivots, info]);
  },
};

export const luSolveCpu: Implementation<LuSolveAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [lu, pivots, b], outputs: [x], attributes }) {
    const { batch, rows: size, columns } = matricesOf(b);
    luSolveCall(operation, { dtype: b.dtype, batch, size, columns, ...attributes }, [lu, pivots, b, x]);
  },
};

export const solveCpu: Implementation<undefined, [Tensor, ...Tensor[]], [Tensor, Tensor, Tensor, Tensor]> = {
  run({ operation, inputs: [a, b], outputs: [x, info, lu, pivots] }) {
    const { batch, rows: size, columns } = matricesOf(x);
    const flags = { inverse: b === undefined, keepsFactor: lu !== undefined };
    solveCall(operation, { dtype: a.dtype, batch, size, columns, ...flags }, [a, b, x, info, lu, pivots]);
  },
};

export const luPermutationCpu: Implementation<LuPermutationAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [pivots], outputs: [permutation], attributes }) {
    const { batch, columns } = matricesOf(pivots);
    const rows = lastElement(permutation.shape);
    luPermutationCall(operation, { batch, rows, pivots: columns, ...attributes }, [pivots, permutation]);
  },
};
