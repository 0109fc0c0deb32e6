import { OrchardError } from "../core/errors.ts";

/**
 * The ranks of a world do not agree, one of them is gone, or MPI can't be used. `code` says which: `mpiMissing`,
 * `mpiUnusable`, `notInitialized`, `mismatch`, `rankLost`, `timeout`, `mpiFailed`.
 */
export class DistributedError extends OrchardError {
  override readonly name = "DistributedError";
  /** The ranks that it is about, where it is about some. */
  readonly ranks: readonly number[];

  constructor(operation: string, code: string, message: string, ranks: readonly number[] = []) {
    super(operation, code, message);
    this.ranks = ranks;
  }
}
