/** The ranks that train one model together: each computes with its share of every batch. */
import { ArgumentError } from "../core/errors.ts";
import type { Share } from "../data/windows.ts";
import { allReduce, broadcast } from "../distributed/collectives.ts";
import { type DataParallel, dataParallel } from "../distributed/data_parallel.ts";
import { barrierAsync, finalize, init, type WorldInfo } from "../distributed/index.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import type { Generator } from "../random/generator.ts";

/** The longest text that rank 0 tells the others, in bytes. */
const MOST_BYTES = 65_536;

/** Ranks whose processes are listed. */
const MOST_SHOWN = 16;

/** 2⁶⁴ divided by the golden ratio: multiples of it are far apart. */
const GOLDEN = 0x9e3779b97f4a7c15n;

export class Team {
  private parallel: DataParallel | undefined;

  private constructor(private readonly world: Pick<WorldInfo, "rank" | "worldSize" | "hosts" | "pids" | "library">) {}

  /** This process alone, which is a team too. */
  static readonly alone = new Team({ rank: 0, worldSize: 1, hosts: [], pids: [], library: undefined });

  /** The processes that a launcher of MPI started. @throws {DistributedError} */
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

  /** Whether this rank shows and writes what all have computed. */
  get isFirst(): boolean {
    return this.rank === 0;
  }

  /** Such as `2 on one host, MPICH 4.0.2: processes 301, 302`, by which launchers name them when they end. */
  toString(): string {
    const { hosts, pids, library } = this.world;
    const count = new Set(hosts).size;
    const shown = pids.length <= MOST_SHOWN ? `: processes ${pids.join(", ")}` : "";
    return `${this.size} on ${count === 1 ? "one host" : `${count} hosts`}, ${library}${shown}`;
  }

  /** The windows of a batch that are this rank's. */
  get share(): Share {
    return { index: this.rank, of: this.size };
  }

  /** @throws {ArgumentError} for a batch of fewer windows than ranks. */
  checkBatch(batch: number): void {
    if (batch >= this.size) return;
    const text = `expected a batch of at least a window for each of the ${this.size} ranks, got ${batch}`;
    throw new ArgumentError("train", "invalidOption", text);
  }

  /**
   * The factor of a rank's loss with which the mean over ranks is the mean over all windows: 1 where each has as many.
   */
  weightOf(windows: number, batch: number): number {
    return (windows * this.size) / batch;
  }

  /** From now on backward passes leave the mean of all ranks' gradients. */
  join(model: LanguageModel): void {
    if (this.size > 1) this.parallel = dataParallel(model);
  }

  /** Runs backward passes without an exchange. */
  apart<Result>(body: () => Result): Result {
    return this.parallel ? this.parallel.noSync(body) : body();
  }

  /** Random numbers of this rank's own, the same in each run: rank 0's are those of a process alone. */
  seed(generator: Generator): void {
    const { seed, offset } = generator.getState();
    generator.setState({ seed: BigInt.asUintN(64, seed + BigInt(this.rank) * GOLDEN), offset });
  }

  /** Element by element the sum over ranks. */
  sum(values: readonly number[]): number[] {
    if (this.size === 1) return [...values];
    return [...allReduce(fromArray(Float64Array.from(values))).dataSync()];
  }

  mean(value: number): number {
    return this.size === 1 ? value : this.sum([value])[0]! / this.size;
  }

  /** Whether something holds on any rank. */
  any(value: boolean): boolean {
    return this.size === 1 ? value : this.sum([value ? 1 : 0])[0]! > 0;
  }

  /** What rank 0 knows. */
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

  /** The end of a run that all have finished. */
  async part(): Promise<void> {
    if (this.size > 1) await finalize();
  }
}
