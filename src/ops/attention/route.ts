/** Which way a call takes. */
import type { BackendName } from "../../backend/names.ts";
import { ArgumentError } from "../../errors.ts";
import type { AttentionPath } from "./options.ts";

export interface Route {
  readonly kind: "fused" | "unfused";
  /** The backend that the caller named. */
  readonly backend: BackendName | undefined;
}

/** Larger rows have no fused kernel. */
export const MAX_DIM = 256;

/** @throws {ArgumentError} for a fused path that there is not. */
export function routeOf(operation: string, path: AttentionPath, dim: number, valueDim: number): Route {
  const isTooLarge = Math.max(dim, valueDim) > MAX_DIM;
  if (path === "unfused" || (path === "auto" && isTooLarge)) return { kind: "unfused", backend: undefined };
  if (isTooLarge)
    throw new ArgumentError(
      operation,
      "dimTooLarge",
      `path "${path}" has head dimensions up to ${MAX_DIM}, ${dim} and ${valueDim} came; { path: "unfused" } has any`,
    );
  return { kind: "fused", backend: path === "auto" || path === "fused" ? undefined : path };
}
