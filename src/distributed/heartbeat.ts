/**
 * Whether ranks of other machines are there. MPI does not say when a network is cut or a process is stopped: it waits.
 * So a thread of each process sends datagrams to some others, and a rank that waits looks for those that fell silent.
 */
import { networkInterfaces } from "node:os";
import { moduleFile } from "../core/place.ts";
import type { Address, Order } from "./heartbeat_main.ts";

/** The most addresses of a machine that are tried. */
const MOST_ADDRESSES = 6;
/** Up to so many ranks everyone watches everyone. */
const MOST_WATCHED = 64;
/** Datagrams in the time after which silence counts, at least; and the longest time between two, in milliseconds. */
const [BEATS, LONGEST] = [8, 1000];

/**
 * The ranks that a rank watches: all others, or of many those at the distances 1, 2, 4, … in both directions, so that
 * each is watched by some on other machines.
 */
export function watchedBy(rank: number, size: number): number[] {
  if (size <= MOST_WATCHED) return Array.from({ length: size }, (_, other) => other).filter((other) => other !== rank);
  const watched = new Set<number>();
  for (let distance = 1; distance < size; distance *= 2)
    for (const other of [rank + distance, rank - distance + size]) watched.add(other % size);
  watched.delete(rank);
  return [...watched].sort((a, b) => a - b);
}

/** What a rank tells the others: its port, its addresses, and what rank 0's datagrams begin with. */
const encode = (port: number, token: string, hosts: readonly string[]): string =>
  `${port} ${token} ${hosts.slice(0, MOST_ADDRESSES).join(" ")}`;

function decode(text: string): { readonly port: number; readonly token: string; readonly hosts: readonly string[] } {
  const [port, token, ...hosts] = text.split(" ");
  return { port: Number(port), token: token!, hosts: hosts.filter((host) => host !== "") };
}

const ownAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address);

/** The thread, and which ranks it misses. */
export class Heartbeat {
  private readonly silent: Int32Array;

  private constructor(
    private readonly worker: Worker,
    readonly size: number,
  ) {
    this.silent = new Int32Array(new SharedArrayBuffer(4 * size));
  }

  /**
   * Begins to watch.
   *
   * @param seconds of silence after which a rank is missed
   * @param exchange gives each rank the texts of all
   */
  static async start(
    rank: number,
    size: number,
    seconds: number,
    exchange: (own: string) => readonly string[],
  ): Promise<Heartbeat> {
    const worker = new Worker(moduleFile("distributed/heartbeat_main"));
    worker.unref();
    const heartbeat = new Heartbeat(worker, size);
    const port = await heartbeat.open();
    const records = exchange(encode(port, crypto.randomUUID(), ownAddresses())).map(decode);
    const interval = Math.min(LONGEST, (seconds * 1000) / BEATS);
    const others: readonly Address[] = watchedBy(rank, size)
      .map((other) => ({ rank: other, ...records[other]! }))
      .filter((other) => other.port > 0);
    const order: Order = {
      ...{ kind: "start", token: records[0]!.token, rank, others, interval },
      ...{ silentIntervals: Math.ceil((seconds * 1000) / interval), silent: heartbeat.silent },
    };
    if (port > 0) worker.postMessage(order);
    return heartbeat;
  }

  /** The port of the thread; 0 where it has none, and the rank is not watched. */
  private open(): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.worker.ref();
    this.worker.onmessage = ({ data }: MessageEvent<number>) => resolve(data);
    this.worker.onerror = ({ message }) => {
      console.warn(`distributed.init: ranks of other machines are not watched: ${message}`);
      resolve(0);
    };
    this.worker.postMessage({ kind: "open" } satisfies Order);
    return promise.finally(() => this.worker.unref());
  }

  /** The ranks that were heard before, and are silent. */
  missing(): number[] {
    return Array.from({ length: this.size }, (_, rank) => rank).filter((rank) => Atomics.load(this.silent, rank) === 1);
  }

  close(): void {
    this.worker.terminate();
  }
}
