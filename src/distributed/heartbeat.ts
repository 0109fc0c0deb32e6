/**
 * Detects lost ranks on other machines. MPI does not report a broken network or a stopped process; it waits. So a
 * thread of each process sends datagrams to some other ranks, and a waiting rank checks which ones fell silent.
 */
import { networkInterfaces } from "node:os";
import { moduleFile } from "../core/place.ts";
import type { Address, Order } from "./heartbeat_main.ts";

/** Maximum number of addresses to try per machine. */
const MOST_ADDRESSES = 6;
/** Maximum number of ranks for which every rank watches all others. */
const MOST_WATCHED = 64;
/** Minimum number of datagrams per timeout, and maximum milliseconds between two. */
const [BEATS, LONGEST] = [8, 1000];

/**
 * Returns the ranks that a rank watches: all others, or for many ranks those at distances 1, 2, 4, … in both
 * directions, so that each rank is watched from other machines.
 */
export function watchedBy(rank: number, size: number): number[] {
  if (size <= MOST_WATCHED) return Array.from({ length: size }, (_, other) => other).filter((other) => other !== rank);
  const watched = new Set<number>();
  for (let distance = 1; distance < size; distance *= 2)
    for (const other of [rank + distance, rank - distance + size]) watched.add(other % size);
  watched.delete(rank);
  return [...watched].sort((a, b) => a - b);
}

/** Encodes a rank's port, its addresses, and the prefix of rank 0's datagrams. */
const encode = (port: number, token: string, hosts: readonly string[]): string =>
  `${port} ${token} ${hosts.slice(0, MOST_ADDRESSES).join(" ")}`;

function decode(text: string): { readonly port: number; readonly token: string; readonly hosts: readonly string[] } {
  const [port, token, ...hosts] = text.split(" ");
  return { port: Number(port), token: token, hosts: hosts.filter((host) => host !== "") };
}

const ownAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address);

/** The heartbeat thread and the ranks that it reports missing. */
export class Heartbeat {
  private readonly silent: Int32Array;

  private constructor(
    private readonly worker: Worker,
    readonly size: number,
  ) {
    this.silent = new Int32Array(new SharedArrayBuffer(4 * size));
  }

  /**
   * Starts watching.
   *
   * @param seconds of silence after which a rank counts as missing
   * @param exchange returns the texts of all ranks
   */
  static async start(
    rank: number,
    size: number,
    seconds: number,
    exchange: (text: string) => readonly string[],
  ): Promise<Heartbeat> {
    const worker = new Worker(moduleFile("distributed/heartbeat_main"));
    worker.unref();
    const heartbeat = new Heartbeat(worker, size);
    const port = await heartbeat.open();
    const records = exchange(encode(port, crypto.randomUUID(), ownAddresses())).map(decode);
    const interval = Math.min(LONGEST, (seconds * 1000) / BEATS);
    const others: readonly Address[] = watchedBy(rank, size)
      .map((other) => ({ rank: other, ...records[other] }))
      .filter((other) => other.port > 0);
    const order: Order = {
      kind: "start",
      token: records[0].token,
      rank,
      others,
      interval,
      silentIntervals: Math.ceil((seconds * 1000) / interval),
      silent: heartbeat.silent,
    };
    if (port > 0) worker.postMessage(order);
    return heartbeat;
  }

  /** Opens the thread's port; 0 if that fails, and the rank is not watched. */
  private open(): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.worker.ref();
    this.worker.onmessage = ({ data }: MessageEvent<number>) => resolve(data);
    this.worker.onerror = ({ message }) => {
      console.warn(`distributed.init: ranks on other machines are not monitored: ${message}`);
      resolve(0);
    };
    this.worker.postMessage({ kind: "open" } satisfies Order);
    return promise.finally(() => this.worker.unref());
  }

  /** Returns the ranks that were heard before and are now silent. */
  missing(): number[] {
    return Array.from({ length: this.size }, (_, rank) => rank).filter((rank) => Atomics.load(this.silent, rank) === 1);
  }

  close(): void {
    this.worker.terminate();
  }
}
