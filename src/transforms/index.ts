/** Transformations of functions: derivatives in both modes, and vectorization. PyTorch's `torch.func`. */

export { type Randomness, VmapError } from "../tensor/batched.ts";
export { functionalCall } from "./functional_call.ts";
export { hessian, hvp, type JacobianOptions, jacobian } from "./jacobian.ts";
export { jvp, type Linearized, linearize, type ValueAndTangent } from "./jvp.ts";
export { type ArgumentNumbers, grad, type ValueAndPullback, vjp } from "./vjp.ts";
export { type Axes, type VmapOptions, vmap } from "./vmap.ts";

import "../ops/methods.ts";
