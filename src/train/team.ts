/** The ranks that train one model together. Each computes a share of every batch. */
import { ArgumentError } from "../core/errors.ts";
import type { Share } from "../data/windows.ts";
import { allReduce, broadcast } from "../distributed/collectives.ts";
import { type DataParallel, dataParallel } from "../distributed/data_parallel.ts";
import { barrierAsync, finalize, init, type WorldInfo } from "../distributed/index.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import type { Generator } from "../random/generator.ts";

/** Maximum bytes of a text that rank 0 sends to the others. */
const MOST_BYTES = 65_536;

/** Maximum number of ranks whose process IDs are listed. */
const MOST_SHOWN = 16;

/** 2⁶⁴ divided by the golden ratio, so that its multiples are far apart. */
const GOLDEN = 0x9e3779b97f4a7c15n;

export class Team {
  private parallel: DataParallel | undefined;

  private constructor(
    private readonly world: Pick<WorldInfo, "rank" | "worldSize" | "hosts" | "pids" | "library" | "nccl">,
  ) {}

  /** A team of only this process. */
  static readonly alone = new Team({
    rank: 0,
    worldSize: 1,
    hosts: [],
    pids: [],
    library: undefined,
    nccl: undefined,
  });

  /** Joins the processes that an MPI launcher started. @throws {DistributedError} */
  static async gather(): Promise<Team> {
    const world = await init();
    return world.worldSize === 1 ? Team.alone : new Team(world);
  }

  get rank(): number {
    return this.world.rank;
  }

  get size(): number {
    return this.world.worldSize;
  }

  /** Whether this rank prints and writes the results. */
  get isFirst(): boolean {
    return this.rank === 0;
  }

  /** Describes the team, such as `2 on one host, MPICH 4.0.2: processes 301, 302`. Launchers use these process IDs. */
  toString(): string {
    const { hosts, pids, library, nccl } = this.world;
    const count = new Set(hosts).size;
    const shown = pids.length <= MOST_SHOWN ? `: processes ${pids.join(", ")}` : "";
    const libraries = [library, ...(nccl === undefined ? [] : [nccl])].join(", ");
    return `${this.size} on ${count === 1 ? "one host" : `${count} hosts`}, ${libraries}${shown}`;
  }

  /** This rank's share of a batch. */
  get share(): Share {
    return { index: this.rank, of: this.size };
  }

  /** Checks the batch size. @throws {ArgumentError} if it is smaller than the number of ranks. */
  checkBatch(batch: number): void {
    if (batch >= this.size) return;
    const text = `expected a batch of at least ${this.size} windows, one for each rank, got ${batch}`;
    throw new ArgumentError("train", "invalidOption", text);
  }

  /**
   * Returns the factor of a rank's loss that makes the mean over ranks the mean over all windows. It is 1 if all ranks
   * have equally many windows.
   */
  weightOf(windows: number, batch: number): number {
    return (windows * this.size) / batch;
  }

  /** Makes backward passes compute the mean of all ranks' gradients. */
  join(model: LanguageModel): void {
    if (this.size > 1) this.parallel = dataParallel(model);
  }

  /** Runs backward passes without exchanging gradients. */
  apart<Result>(body: () => Result): Result {
    return this.parallel ? this.parallel.noSync(body) : body();
  }

  /**
   * Seeds a generator reproducibly, with different numbers for each rank. Rank 0 has the numbers of a single process.
   */
  seed(generator: Generator): void {
    const { seed, offset } = generator.getState();
    generator.setState({ seed: BigInt.asUintN(64, seed + BigInt(this.rank) * GOLDEN), offset });
  }

  /** Returns the elementwise sum over ranks. */
  sum(values: readonly number[]): number[] {
    if (this.size === 1) return [...values];
    return [...allReduce(fromArray(Float64Array.from(values))).dataSync()];
  }

  mean(value: number): number {
    return this.size === 1 ? value : this.sum([value])[0] / this.size;
  }

  /** Whether `value` is true on any rank. */
  any(value: boolean): boolean {
    return this.size === 1 ? value : this.sum([value ? 1 : 0])[0] > 0;
  }

  /** Returns rank 0's text. */
  told(text: string): string {
    if (this.size === 1) return text;
    const bytes = new Uint8Array(MOST_BYTES);
    new TextEncoder().encodeInto(text, bytes);
    const got = broadcast(fromArray(bytes)).dataSync();
    return new TextDecoder().decode(got.subarray(0, got.indexOf(0)));
  }

  /** Waits for all ranks. */
  async together(): Promise<void> {
    if (this.size > 1) await barrierAsync();
  }

  /** Leaves the team after all ranks have finished. */
  async part(): Promise<void> {
    if (this.size > 1) await finalize();
  }
}
