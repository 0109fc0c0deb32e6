/** Wrong calls of operations: what each must be refused with. A file of `mistakes/` has those of a kind. */
import { axes, indices, ranks, steps } from "./mistakes/axes.ts";
import { dtypes, overflows } from "./mistakes/dtypes.ts";
import { graphs, repeats } from "./mistakes/graphs.ts";
import { shapes } from "./mistakes/shapes.ts";
import { ragged, sizes } from "./mistakes/sizes.ts";
import type { Mistake } from "./mistakes/table.ts";

export { limits } from "./mistakes/limits.ts";
export type { ErrorClass, Mistake } from "./mistakes/table.ts";

/** Every mistake but those that are made of right calls: see bad_input.test.ts. */
export const mistakes: readonly Mistake[] = [
  ...[shapes, dtypes, ranks, axes, indices, steps, ragged, sizes, overflows, graphs, repeats].flat(),
];
