import { getBackend, withBackend } from "../backend/policy.ts";

/** @internal Runs a computation in float64: on the CPU if the backend is `metal`, which has no float64. */
export const withFloat64 = <Result>(body: () => Result): Result =>
  getBackend() === "metal" ? withBackend("cpu", body) : body();
