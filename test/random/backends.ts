import { metalContext } from "../../src/backend/metal/context.ts";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";

/** The tested backends. The first one defines the expected numbers. */
export const tested: readonly BackendName[] = environmentFlag("ORCHARD_SKIP_METAL")
  ? ["reference", "cpu"]
  : ["reference", "cpu", "metal"];

/** The backends that have a dtype: Metal has no float64. */
export const backendsOf = (dtype: string): readonly BackendName[] =>
  tested.filter((name) => name !== "metal" || dtype !== "float64");

/** Runs on one backend and no other; on metal under the checker, which must find nothing. */
export function on<Result>(backend: BackendName, body: () => Result): Result {
  if (backend === "metal") metalContext().configure("check", true);
  const result = withStrict(true, () => withBackend(backend, body));
  if (backend === "metal") {
    metalContext().wait();
    const { findings } = metalContext().report({ clear: true });
    if (findings.length > 0) throw new Error(`the checker found ${JSON.stringify(findings[0])}`);
  }
  return result;
}

/** A tensor's bytes, as text that tests compare. */
export function bytesOf(tensor: Tensor): string {
  const elements = tensor.dataSync();
  const bytes = Buffer.from(elements.buffer, elements.byteOffset, elements.byteLength);
  return `${tensor.describe()} ${bytes.toString("hex")}`;
}
