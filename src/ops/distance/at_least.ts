import type { Tensor } from "../../tensor/tensor.ts";
import { add, sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { detach } from "../gradient/backward.ts";

/** Computes max(x, least) with gradient 1 everywhere, also below `least`, as PyTorch does for norms and variances. */
export const atLeast = (x: Tensor, least: number): Tensor => add(x, detach(sub(clamp(x, { min: least }), x)));
