/** The world: this process among the others, from `init` to `finalize`. */
import { environment } from "../core/environment.ts";
import { ArgumentError } from "../core/errors.ts";
import { aNumber, flag } from "../core/kinds.ts";
import { processorLimit } from "../core/limits.ts";
import { type NumberRule, positive } from "../core/options.ts";
import { expectNothing, named, parameters } from "../core/parameters.ts";
import { DistributedError } from "./errors.ts";
import { Heartbeat } from "./heartbeat.ts";
import { installAdvice, type Launch, launchOf, locate } from "./locate.ts";
import { type Communicator, type Elements, Mpi } from "./mpi.ts";
import { decodePeer, encodePeer, ownPeer, Watch } from "./peers.ts";
import { Queue } from "./queue.ts";

/** Options of {@link init}. */
export interface InitOptions {
  /**
   * Whether every call first compares what it is on all ranks, so that shapes, dtypes or calls that differ are an error
   * on each of them. It costs a short exchange per call. Default true.
   */
  check?: boolean | undefined;
  /** Seconds after which a call that other ranks do not join is an error. Default 1800. */
  timeout?: number | undefined;
  /**
   * Seconds after which a rank of another machine that is not heard of any more, or a stopped one of this machine,
   * counts as lost. Default 20, or `ORCHARD_MPI_HEARTBEAT`.
   */
  heartbeat?: number | undefined;
}

/** What was found: the number of processes, this one's place among them, and the library that connects them. */
export interface WorldInfo {
  readonly rank: number;
  readonly worldSize: number;
  /** Among the ranks of this machine. */
  readonly localRank: number;
  /** How many ranks run on this machine. */
  readonly localSize: number;
  /** The machine of each rank. */
  readonly hosts: readonly string[];
  /** The process number of each rank: what launchers and systems call it. */
  readonly pids: readonly number[];
  /** Such as `Open MPI v4.1.4`; undefined in a world of one, which needs none. */
  readonly library: string | undefined;
}

/** Ranks that exchange tensors. */
export interface Connection {
  readonly mpi: Mpi;
  readonly queue: Queue;
  /** For calls that every rank makes. */
  readonly everyone: Communicator;
  /** For messages between two ranks. */
  readonly pairs: Communicator;
  /** Between machines only. */
  readonly heartbeat: Heartbeat | undefined;
}

/** A world that was initialised. */
export interface World extends WorldInfo {
  /** Undefined in a world of one. */
  readonly connection: Connection | undefined;
}

let joining: Promise<World> | undefined;
let current: World | undefined;
let ended = false;

/**
 * Joins the processes that a launcher of MPI started (`mpirun -n 4 bun program.ts`, `srun`): finds the library (Open
 * MPI, MPICH, or any with the standard ABI of MPI 5), and initialises it. A process that was started alone is a world
 * of one, needs no MPI, and all calls work. A second call returns the same world.
 *
 * @example
 * const { rank, worldSize } = await distributed.init();
 * console.log(`rank ${rank} of ${worldSize}`);
 *
 * @throws {DistributedError} `mpiMissing` where a launcher started the process and there is no MPI, saying what to
 * install; `mpiUnusable` where the library is not the launcher's; `finalized` after {@link finalize}.
 */
export function init(options?: InitOptions): Promise<WorldInfo>;
export async function init(...values: unknown[]): Promise<WorldInfo> {
  const options = initParameters(values);
  if (ended) throw new DistributedError("distributed.init", "finalized", "MPI can't be initialised again");
  joining ??= join(launchOf(), options);
  try {
    current = await joining;
  } catch (error) {
    joining = undefined;
    throw error;
  }
  const { connection: _, ...info } = current;
  return info;
}
const initParameters = parameters("distributed.init", {
  check: named(flag, true),
  timeout: named(aNumber(positive), 1800),
  heartbeat: named(aNumber(positive)),
});

/** Seconds of silence after which a rank is missed. @throws {ArgumentError} */
function heartbeatSeconds(): number {
  const text = environment("ORCHARD_MPI_HEARTBEAT") ?? "20";
  const seconds = Number(text);
  if (positive.holds(seconds)) return seconds;
  const problem = `expected ORCHARD_MPI_HEARTBEAT to be ${positive.expected}, got "${text}"`;
  throw new ArgumentError("distributed.init", "invalidSetting", problem);
}

interface JoinOptions {
  readonly check: boolean;
  readonly timeout: number;
  readonly heartbeat: number | undefined;
}

async function join(launch: Launch | undefined, options: JoinOptions): Promise<World> {
  if (launch === undefined) return alone();
  const { check, timeout, heartbeat: seconds = heartbeatSeconds() } = options;
  const located = locate();
  if (located === undefined) {
    const family = launch.family ?? "MPI";
    const text = `a launcher of ${family} started this process, and there is no library of MPI; ${installAdvice()}`;
    throw new DistributedError("distributed.init", "mpiMissing", text);
  }
  const mpi = new Mpi(located);
  mpi.init();
  const [rank, size] = [mpi.rank(), mpi.size()];
  checkLauncher(mpi, launch, size);
  endWithProcess(mpi);
  const peers = exchangeTexts(mpi, size, encodePeer(ownPeer())).map(decodePeer);
  const local = [...peers.keys()].filter((other) => peers[other]!.place === peers[rank]!.place);
  const heartbeat =
    local.length < size
      ? await Heartbeat.start(rank, size, seconds, (own) => exchangeTexts(mpi, size, own))
      : undefined;
  const watch = new Watch(peers, rank, seconds, () => heartbeat?.missing() ?? []);
  const lost = () => watch.lost();
  const isCrowded = local.length > processorLimit().count;
  return {
    rank,
    worldSize: size,
    localRank: local.indexOf(rank),
    localSize: local.length,
    hosts: peers.map(({ host }) => host),
    pids: peers.map(({ pid }) => pid),
    library: mpi.version(),
    connection: {
      mpi,
      queue: new Queue({ mpi, size, isChecked: check && size > 1, timeout, isCrowded, lost }),
      everyone: mpi.duplicate(mpi.world),
      pairs: mpi.duplicate(mpi.world),
      heartbeat,
    },
  };
}

const alone = (): World => ({
  ...{
    rank: 0,
    worldSize: 1,
    localRank: 0,
    localSize: 1,
    hosts: [ownPeer().host],
    pids: [process.pid],
    library: undefined,
  },
  connection: undefined,
});

/** Another library than the launcher's makes a world of one of each process. */
function checkLauncher(mpi: Mpi, { family, size: expected }: Launch, size: number): void {
  if (expected === undefined || expected === size) return;
  const text =
    `${mpi.version()} (${mpi.path}) sees ${size} ranks where the launcher${family ? ` of ${family}` : ""} started ` +
    `${expected}: they are not of one installation; name the launcher's libmpi in ORCHARD_MPI`;
  mpi.finalize();
  throw new DistributedError("distributed.init", "mpiUnusable", text);
}

/** Bytes of a text that a rank tells the others. */
const TEXT_BYTES = 256;

/** A short text of each rank, on every rank. */
function exchangeTexts(mpi: Mpi, size: number, own: string): string[] {
  const bytes = new Uint8Array(new ArrayBuffer(TEXT_BYTES));
  bytes.set(new TextEncoder().encode(own).subarray(0, TEXT_BYTES));
  const from: Elements = { bytes, type: "uint8", count: TEXT_BYTES };
  const all = new Uint8Array(new ArrayBuffer(TEXT_BYTES * size));
  const request = mpi.allGather("distributed.init", mpi.world, from, { bytes: all, type: "uint8", count: all.length });
  while (!request.test()) Bun.sleepSync(1);
  return Array.from({ length: size }, (_, rank) =>
    new TextDecoder().decode(all.subarray(rank * TEXT_BYTES, (rank + 1) * TEXT_BYTES)).replace(/\0.*$/s, ""),
  );
}

/** A process that ends well finalises MPI; one that fails ends the other ranks too, which would wait for it. */
function endWithProcess(mpi: Mpi): void {
  process.on("exit", (code) => {
    try {
      if (code === 0) leave();
    } catch (error) {
      console.error(error instanceof DistributedError ? error.message : error);
    }
    if (!mpi.isFinalized) mpi.abort(code === 0 ? 1 : code);
    else if (code === 0) {
      forget(); // what runs at the end too, and calls something, gets an error
      mpi.unload();
    }
  });
}

/** Waits until every rank leaves, so that one that is lost meanwhile is found, and ends MPI. */
function leave(): void {
  const { connection } = current ?? {};
  if (connection === undefined || connection.mpi.isFinalized) return;
  const { mpi, queue, everyone, heartbeat } = connection;
  const job = queue.begin("distributed.finalize", "the end", function* () {
    yield mpi.barrier("distributed.finalize", everyone);
  });
  queue.wait(job);
  heartbeat?.close();
  mpi.finalize();
}

/**
 * Leaves the world: waits for all ranks, and ends MPI, which can't be initialised again. A process that ends without an
 * error does it by itself. No call may be under way.
 *
 * @throws {DistributedError} `callsUnderWay`; `mismatch` where other ranks make another call; `rankLost`, `timeout`
 */
export async function finalize(): Promise<void> {
  const { connection } = current ?? {};
  if (connection !== undefined && connection.queue.pending > 0) {
    const text = `${connection.queue.pending} calls are under way; await them first`;
    throw new DistributedError("distributed.finalize", "callsUnderWay", text);
  }
  leave();
  forget();
}

/** From here on there is no world. */
function forget(): void {
  ended ||= current?.connection !== undefined;
  current = undefined;
  joining = undefined;
}

/** Whether {@link init} was called, and {@link finalize} was not. */
export function isInitialized(): boolean;
export function isInitialized(...values: unknown[]): boolean {
  expectNothing("distributed.isInitialized", values);
  return current !== undefined;
}

/** This process's number in the world, from 0. @throws {DistributedError} `notInitialized` */
export function rank(): number;
export function rank(...values: unknown[]): number {
  expectNothing("distributed.rank", values);
  return worldOf("distributed.rank").rank;
}

/** How many processes there are. @throws {DistributedError} `notInitialized` */
export function worldSize(): number;
export function worldSize(...values: unknown[]): number {
  expectNothing("distributed.worldSize", values);
  return worldOf("distributed.worldSize").worldSize;
}

/** This process's number among those of its machine, from 0. @throws {DistributedError} `notInitialized` */
export function localRank(): number;
export function localRank(...values: unknown[]): number {
  expectNothing("distributed.localRank", values);
  return worldOf("distributed.localRank").localRank;
}

/** @internal @throws {DistributedError} `notInitialized` */
export function worldOf(operation: string): World {
  if (current !== undefined) return current;
  const text = ended ? "distributed.finalize() was called" : "call `await distributed.init()` first";
  throw new DistributedError(operation, "notInitialized", text);
}

/** The number of a rank; which ones there are is the world's to say. */
export const wholeNumber: NumberRule = {
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
};

/**
 * @internal Checks the rank that a call names.
 *
 * @param which `another`: than this one
 *
 * @throws {ArgumentError} `noSuchRank`
 */
export function checkRank(operation: string, name: string, given: number, which: "any" | "another" = "any"): void {
  const { worldSize: size, rank: own } = worldOf(operation);
  if (given < size && (which === "any" || given !== own)) return;
  const expected = `a rank below ${size}${which === "another" ? ` other than this one, ${own}` : ""}`;
  throw new ArgumentError(operation, "noSuchRank", `expected ${name} to be ${expected}, got ${given}`);
}
