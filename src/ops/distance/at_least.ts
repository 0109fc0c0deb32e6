import { needsGradient } from "../../autograd/record.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { add, sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { detach } from "../gradient/backward.ts";

/** Computes max(x, least) with gradient 1 everywhere, also below `least`, as PyTorch does for norms and variances. */
export function atLeast(x: Tensor, least: number): Tensor {
  const limited = clamp(x, { min: least });
  return needsGradient(x) ? add(x, detach(sub(limited, x))) : limited;
}
