import { OrchardError } from "../core/errors.ts";

/**
 * Ranks disagree, a rank is lost, or a library can't be used. `code` is one of `mpiMissing`, `mpiUnusable`,
 * `notInitialized`, `mismatch`, `rankLost`, `timeout`, `mpiFailed`, `gpuShared`, `gpuFailed`, `ncclFailed`,
 * `notOnGpu`.
 */
export class DistributedError extends OrchardError {
  override readonly name = "DistributedError";
  /** The ranks that the error concerns, if any. */
  readonly ranks: readonly number[];

  constructor(operation: string, code: string, message: string, ranks: readonly number[] = []) {
    super(operation, code, message);
    this.ranks = ranks;
  }
}
