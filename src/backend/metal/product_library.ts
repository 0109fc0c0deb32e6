/** Decides whether matrix products on an NVIDIA GPU use cuBLASLt. */
import { getOrMake } from "../../core/collections.ts";
import { type MetalContext, metalContext } from "./context.ts";

/** Whether the library is used. */
export interface ProductLibrary {
  readonly use: boolean;
  /** The library's name, such as `cuBLASLt 13.4.1`, or why it isn't used. Empty on devices without such a library. */
  readonly reason: string;
}

const NONE: ProductLibrary = { use: false, reason: "" };

const known = new WeakMap<MetalContext, ProductLibrary>();
let forced: ProductLibrary | undefined;

/** @internal Returns the decision for the shared context. The first call loads the library. */
export function productLibrary(): ProductLibrary {
  if (forced) return forced;
  const context = metalContext();
  return getOrMake(known, context, () => decide(context));
}

function decide(context: MetalContext): ProductLibrary {
  if (context.isSoftware || process.platform !== "linux") return NONE;
  const library = context.libraries().productLibrary;
  return library ? { use: library.supported, reason: library.reason } : NONE;
}

/**
 * @internal Runs `body` as if a library were used or not, for tests. The software device runs the library's products
 * with its kernels.
 */
export function withProductLibrary<Result>(use: boolean, body: () => Result): Result {
  const before = forced;
  forced = { use, reason: "set by withProductLibrary" };
  try {
    return body();
  } finally {
    forced = before;
  }
}
