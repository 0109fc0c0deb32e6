/** Transformations of functions: derivatives in both modes, and vectorization. PyTorch's `torch.func`. */

export { jvp, type Linearized, linearize, type ValueAndTangent } from "./jvp.ts";

import "../ops/methods.ts";
