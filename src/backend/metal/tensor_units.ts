/** Whether products use the matrix units of a GPU, through Metal 4's tensors. */
import { getOrMake } from "../../core/collections.ts";
import { type MetalContext, metalContext } from "./context.ts";

/** Whether kernels with tensors are used, and why. */
export interface TensorUnits {
  readonly use: boolean;
  readonly reason: string;
}

/** The first family with matrix units: M5 and A19. Older GPUs run tensors without them, and not faster (llama.cpp). */
const FIRST_FAMILY = "apple10";

const known = new WeakMap<MetalContext, TensorUnits>();
let forced: TensorUnits | undefined;

/** @internal Decides for the shared context. The probe runs only on GPUs with matrix units. */
export function tensorUnits(): TensorUnits {
  if (forced) return forced;
  const context = metalContext();
  return getOrMake(known, context, () => decide(context));
}

function decide(context: MetalContext): TensorUnits {
  if (!context.deviceInfo().families.includes(FIRST_FAMILY))
    return { use: false, reason: `the GPU is older than ${FIRST_FAMILY}` };
  const { supported, reason } = context.deviceInfo({ probe: true }).capabilities!.tensorOps;
  return supported
    ? { use: true, reason: `the GPU has the matrix units of ${FIRST_FAMILY}` }
    : { use: false, reason: `the probe of tensors failed: ${reason}` };
}

/** @internal Runs `body` as on a GPU with matrix units, or without them, for tests. */
export function withTensorUnits<Result>(use: boolean, body: () => Result): Result {
  const before = forced;
  forced = { use, reason: "set by withTensorUnits" };
  try {
    return body();
  } finally {
    forced = before;
  }
}
