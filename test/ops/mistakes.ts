/** Invalid calls of operations, and the error of each. Each file in `mistakes/` has one kind. */
import { axes, indices, ranks, steps } from "./mistakes/axes.ts";
import { dtypes, overflows } from "./mistakes/dtypes.ts";
import { graphs, repeats } from "./mistakes/graphs.ts";
import { shapes } from "./mistakes/shapes.ts";
import { ragged, sizes } from "./mistakes/sizes.ts";
import type { Mistake } from "./mistakes/table.ts";

export { limits } from "./mistakes/limits.ts";
export type { ErrorClass, Mistake } from "./mistakes/table.ts";

/** Every mistake except those derived from valid calls: see bad_input.test.ts. */
export const mistakes: readonly Mistake[] = [
  ...[shapes, dtypes, ranks, axes, indices, steps, ragged, sizes, overflows, graphs, repeats].flat(),
];
