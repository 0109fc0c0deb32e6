/** Kinds of GPUs that need different kernels or tiles. */
import { getOrMake } from "../../core/collections.ts";
import { type MetalContext, metalContext } from "./context.ts";

/** `apple9` is M3 and later; `apple7` is every other GPU, and the software device. */
export type GpuFamily = "apple7" | "apple9" | "nvidia";

let forced: GpuFamily | undefined;
const families = new WeakMap<MetalContext, GpuFamily>();

/** Returns the kind of the shared context's GPU. */
export function gpuFamily(): GpuFamily {
  if (forced) return forced;
  const context = metalContext();
  return getOrMake(families, context, () => familyOf(context));
}

/** @internal Runs `body` with the kernels and tiles of another GPU, for tests. */
export function withGpuFamily<Result>(family: GpuFamily, body: () => Result): Result {
  const before = forced;
  forced = family;
  try {
    return body();
  } finally {
    forced = before;
  }
}

function familyOf(context: MetalContext): GpuFamily {
  if (process.platform === "linux" && !context.isSoftware) return "nvidia";
  return context.deviceInfo().families.includes("apple9") ? "apple9" : "apple7";
}
