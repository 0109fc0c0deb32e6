/** The world of processes, from `init` to `finalize`. */
import { environment } from "../core/environment.ts";
import { ArgumentError } from "../core/errors.ts";
import { aNumber, flag } from "../core/kinds.ts";
import { processorLimit } from "../core/limits.ts";
import { type NumberRule, positive } from "../core/options.ts";
import { expectNothing, named, parameters } from "../core/parameters.ts";
import { DistributedError } from "./errors.ts";
import { type Exchange, mpiExchange, ncclExchange } from "./exchange.ts";
import { agree } from "./gpu.ts";
import { Heartbeat } from "./heartbeat.ts";
import { installAdvice, type Launch, launchOf, locate } from "./locate.ts";
import { type Communicator, type Elements, Mpi } from "./mpi.ts";
import type { Nccl } from "./nccl.ts";
import { decodePeer, encodePeer, ownPeer, Watch } from "./peers.ts";
import { Queue } from "./queue.ts";

/** Options of {@link init}. */
export interface InitOptions {
  /**
   * Whether ranks compare each call before they run it, so that different shapes, dtypes or calls are an error on all
   * ranks. This costs a short exchange per call. Default true.
   */
  check?: boolean | undefined;
  /** Seconds that a call waits for other ranks to join before it throws. Default 1800. */
  timeout?: number | undefined;
  /**
   * Seconds after which a silent rank on another machine, or a stopped one on this machine, counts as lost. Default 20,
   * or `ORCHARD_MPI_HEARTBEAT`.
   */
  heartbeat?: number | undefined;
}

/** The number of processes, this process's rank, and the library that connects them. */
export interface WorldInfo {
  readonly rank: number;
  readonly worldSize: number;
  /** This rank's index among the ranks of this machine. */
  readonly localRank: number;
  /** The number of ranks on this machine. */
  readonly localSize: number;
  /** The machine of each rank. */
  readonly hosts: readonly string[];
  /** The process ID of each rank. */
  readonly pids: readonly number[];
  /** The MPI library, such as `Open MPI v4.1.4`; undefined in a world of one, which needs none. */
  readonly library: string | undefined;
  /**
   * The library that exchanges the gradients of tensors on NVIDIA GPUs, such as `NCCL 2.28.9`; undefined if MPI does.
   */
  readonly nccl: string | undefined;
  /** Why NCCL isn't used; undefined if it is. */
  readonly whyNotNccl: string | undefined;
}

/** The connection of ranks that exchange tensors. */
export interface Connection {
  readonly mpi: Mpi;
  readonly queue: Queue;
  /** The communicator for collective calls. */
  readonly everyone: Communicator;
  /** The communicator for messages between two ranks. */
  readonly pairs: Communicator;
  /** Present only if there are several machines. */
  readonly heartbeat: Heartbeat | undefined;
  /** Exchange the gradients of training: over MPI for all tensors, over NCCL for tensors on GPUs. */
  readonly overMpi: Exchange;
  readonly overNccl: Exchange | undefined;
  readonly nccl: Nccl | undefined;
}

/** An initialized world. */
export interface World extends WorldInfo {
  /** Undefined in a world of one. */
  readonly connection: Connection | undefined;
}

let joining: Promise<World> | undefined;
let current: World | undefined;
let ended = false;

/**
 * Joins the processes that an MPI launcher started (`mpirun -n 4 bun program.ts`, `srun`): finds the library (Open MPI,
 * MPICH, or any with the standard ABI of MPI 5) and initializes it. A process that was started alone is a world of one:
 * it needs no MPI, and all calls work. A second call returns the same world.
 *
 * @example
 * const { rank, worldSize } = await distributed.init();
 * console.log(`rank ${rank} of ${worldSize}`);
 *
 * @throws {DistributedError} `mpiMissing` if a launcher started the process but there is no MPI, with advice on what to
 * install; `mpiUnusable` if the library does not match the launcher; `gpuShared` if two ranks use the same NVIDIA GPU
 * and neither named it; `finalized` after {@link finalize}.
 */
export function init(options?: InitOptions): Promise<WorldInfo>;
export async function init(...values: unknown[]): Promise<WorldInfo> {
  const options = initParameters(values);
  if (ended) throw new DistributedError("distributed.init", "finalized", "MPI can't be initialized again");
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

/** Returns the seconds of silence after which a rank counts as lost. @throws {ArgumentError} */
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
    const text = `a launcher of ${family} started this process, but there is no MPI library; ${installAdvice()}`;
    throw new DistributedError("distributed.init", "mpiMissing", text);
  }
  const mpi = new Mpi(located);
  mpi.init();
  const [rank, size] = [mpi.rank(), mpi.size()];
  checkLauncher(mpi, launch, size);
  endWithProcess(mpi);
  const peers = exchangeTexts(mpi, size, encodePeer(ownPeer())).map(decodePeer);
  const local = [...peers.keys()].filter((other) => peers[other].place === peers[rank].place);
  const heartbeat =
    local.length < size
      ? await Heartbeat.start(rank, size, seconds, (text) => exchangeTexts(mpi, size, text))
      : undefined;
  const watch = new Watch(peers, rank, seconds, () => heartbeat?.missing() ?? []);
  const lost = () => watch.lost();
  const isCrowded = local.length > processorLimit().count;
  const everyone = mpi.duplicate(mpi.world);
  const { nccl, reason } = agree({
    rank,
    size,
    exchangeTexts: (text) => exchangeTexts(mpi, size, text),
    broadcast: (bytes) => broadcastBytes(mpi, bytes),
  });
  return {
    rank,
    worldSize: size,
    localRank: local.indexOf(rank),
    localSize: local.length,
    hosts: peers.map(({ host }) => host),
    pids: peers.map(({ pid }) => pid),
    library: mpi.version(),
    nccl: nccl?.library.name,
    whyNotNccl: nccl === undefined ? reason : undefined,
    connection: {
      mpi,
      queue: new Queue({ mpi, size, isChecked: check && size > 1, timeout, isCrowded, lost }),
      everyone,
      pairs: mpi.duplicate(mpi.world),
      heartbeat,
      overMpi: mpiExchange(mpi, everyone),
      overNccl: nccl && ncclExchange(nccl),
      nccl,
    },
  };
}

const alone = (): World => ({
  rank: 0,
  worldSize: 1,
  localRank: 0,
  localSize: 1,
  hosts: [ownPeer().host],
  pids: [process.pid],
  library: undefined,
  nccl: undefined,
  whyNotNccl: "there is one process",
  connection: undefined,
});

/** Checks that the library matches the launcher. Otherwise each process would be a world of one. */
function checkLauncher(mpi: Mpi, { family, size: expected }: Launch, size: number): void {
  if (expected === undefined || expected === size) return;
  const text =
    `${mpi.version()} (${mpi.path}) sees ${size} ranks, but the launcher${family ? ` of ${family}` : ""} started ` +
    `${expected}: they belong to different installations; set ORCHARD_MPI to the path of the launcher's libmpi`;
  mpi.finalize();
  throw new DistributedError("distributed.init", "mpiUnusable", text);
}

/** Maximum bytes of a text that a rank sends to the others. */
const TEXT_BYTES = 256;

/** Exchanges a short text of each rank, and returns the texts of all. */
function exchangeTexts(mpi: Mpi, size: number, text: string): string[] {
  const bytes = new Uint8Array(new ArrayBuffer(TEXT_BYTES));
  bytes.set(new TextEncoder().encode(text).subarray(0, TEXT_BYTES));
  const from: Elements = { bytes, type: "uint8", count: TEXT_BYTES };
  const all = new Uint8Array(new ArrayBuffer(TEXT_BYTES * size));
  const request = mpi.allGather("distributed.init", mpi.world, from, { bytes: all, type: "uint8", count: all.length });
  while (!request.test()) Bun.sleepSync(1);
  return Array.from({ length: size }, (_, rank) =>
    new TextDecoder().decode(all.subarray(rank * TEXT_BYTES, (rank + 1) * TEXT_BYTES)).replace(/\0.*$/s, ""),
  );
}

/** Fills the array with rank 0's bytes. */
function broadcastBytes(mpi: Mpi, bytes: Uint8Array<ArrayBuffer>): void {
  const elements: Elements = { bytes, type: "uint8", count: bytes.length };
  const request = mpi.broadcast("distributed.init", mpi.world, elements, 0);
  while (!request.test()) Bun.sleepSync(1);
}

/** At exit, finalizes MPI, or after a failure aborts the other ranks, which would wait forever. */
function endWithProcess(mpi: Mpi): void {
  process.on("exit", (code) => {
    try {
      if (code === 0) leave();
    } catch (error) {
      console.error(error instanceof DistributedError ? error.message : error);
    }
    if (!mpi.isFinalized) mpi.abort(code === 0 ? 1 : code);
    else if (code === 0) {
      forget(); // so that calls in other exit handlers throw
      mpi.unload();
    }
  });
}

/** Waits until every rank leaves, which detects lost ranks, and finalizes MPI. */
function leave(): void {
  const { connection } = current ?? {};
  if (connection === undefined || connection.mpi.isFinalized) return;
  const { mpi, queue, everyone, heartbeat, nccl } = connection;
  const job = queue.begin("distributed.finalize", "the end", function* () {
    yield mpi.barrier("distributed.finalize", everyone);
  });
  queue.wait(job);
  heartbeat?.close();
  nccl?.close();
  mpi.finalize();
}

/**
 * Leaves the world: waits for all ranks and finalizes MPI, which can't be initialized again. A process that ends
 * without an error does this automatically. No call may be in progress.
 *
 * @example
 * await distributed.finalize();
 *
 * @throws {DistributedError} `callsUnderWay`; `mismatch` if other ranks make another call; `rankLost`, `timeout`
 */
export async function finalize(): Promise<void> {
  const { connection } = current ?? {};
  if (connection !== undefined && connection.queue.pending > 0) {
    const text = `${connection.queue.pending} calls are in progress; await them first`;
    throw new DistributedError("distributed.finalize", "callsUnderWay", text);
  }
  leave();
  forget();
}

/** Forgets the world. */
function forget(): void {
  ended ||= current?.connection !== undefined;
  current = undefined;
  joining = undefined;
}

/**
 * Returns whether {@link init} was called and {@link finalize} was not.
 *
 * @example
 * if (!distributed.isInitialized()) await distributed.init();
 */
export function isInitialized(): boolean;
export function isInitialized(...values: unknown[]): boolean {
  expectNothing("distributed.isInitialized", values);
  return current !== undefined;
}

/**
 * Returns this process's rank in the world, from 0.
 *
 * @example
 * if (distributed.rank() === 0) console.log(loss.item()); // printed once
 *
 * @throws {DistributedError} `notInitialized`
 */
export function rank(): number;
export function rank(...values: unknown[]): number {
  expectNothing("distributed.rank", values);
  return worldOf("distributed.rank").rank;
}

/**
 * Returns the number of processes.
 *
 * @example
 * const perRank = batch / distributed.worldSize();
 *
 * @throws {DistributedError} `notInitialized`
 */
export function worldSize(): number;
export function worldSize(...values: unknown[]): number {
  expectNothing("distributed.worldSize", values);
  return worldOf("distributed.worldSize").worldSize;
}

/**
 * Returns this process's index among those of its machine, from 0.
 *
 * @example
 * if (distributed.localRank() === 0) await download(file); // once per machine
 *
 * @throws {DistributedError} `notInitialized`
 */
export function localRank(): number;
export function localRank(...values: unknown[]): number {
  expectNothing("distributed.localRank", values);
  return worldOf("distributed.localRank").localRank;
}

/** @internal Returns the world. @throws {DistributedError} `notInitialized` */
export function worldOf(operation: string): World {
  if (current !== undefined) return current;
  const text = ended ? "distributed.finalize() was called" : "call `await distributed.init()` first";
  throw new DistributedError(operation, "notInitialized", text);
}

/** A rank's number. The world checks whether the rank exists. */
export const wholeNumber: NumberRule = {
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
};

/** @internal Checks another rank that is passed to a call, and returns the connection to it. @throws as checkRank */
export function connectionTo(operation: string, name: string, given: number): Connection {
  checkRank(operation, name, given, "another");
  return worldOf(operation).connection as Connection; // there is another rank
}

/**
 * @internal Checks a rank that is passed to a call.
 *
 * @param which `another`: must differ from this rank
 *
 * @throws {ArgumentError} `noSuchRank`
 */
export function checkRank(operation: string, name: string, given: number, which: "any" | "another" = "any"): void {
  const { worldSize: size, rank } = worldOf(operation);
  if (given < size && (which === "any" || given !== rank)) return;
  const expected = `a rank below ${size}${which === "another" ? ` other than this one, ${rank}` : ""}`;
  throw new ArgumentError(operation, "noSuchRank", `expected ${name} to be ${expected}, got ${given}`);
}
