/**
 * The heartbeat thread: sends datagrams to other ranks periodically, and counts how long each has been silent. It runs
 * while the main thread computes, and stops when the process is stopped.
 */

/** Messages to the thread: first to open its port, then the ranks to watch. */
export type Order =
  | { readonly kind: "open" }
  | {
      readonly kind: "start";
      /** The prefix of this world's datagrams. */
      readonly token: string;
      readonly rank: number;
      readonly others: readonly Address[];
      /** Milliseconds between two datagrams. */
      readonly interval: number;
      /** Maximum number of silent intervals. */
      readonly silentIntervals: number;
      /** For each rank: 1 once it has been silent for longer than the limit. */
      readonly silent: Int32Array;
    };

/** The destination of datagrams to a rank. */
export interface Address {
  readonly rank: number;
  readonly port: number;
  readonly hosts: readonly string[];
}

declare const self: {
  onmessage: (event: MessageEvent<Order>) => void;
  postMessage(port: number): void;
};

/**
 * The number of intervals since each rank was last heard. Ranks that were never heard have no entry: if UDP is blocked,
 * there are none.
 */
const quiet = new Map<number, number>();
let [expected, socket] = ["", undefined as Bun.udp.Socket<"buffer"> | undefined];
/** Datagrams received before the token was known, since other ranks may start earlier. */
const early: string[] = [];
const MOST_EARLY = 4096;

function hear(datagram: string): void {
  const [token, rank] = datagram.split(" ");
  if (expected === "") early.push(...(early.length < MOST_EARLY ? [datagram] : []));
  else if (token === expected) quiet.set(Number(rank), 0);
}

function beat(order: Extract<Order, { kind: "start" }>): void {
  const datagram = `${order.token} ${order.rank}`;
  for (const { port, hosts } of order.others)
    for (const host of hosts)
      try {
        socket!.send(datagram, port, host);
      } catch {
        // the rank can't be reached now; its silence is detected anyway
      }
  // Counts intervals instead of time, so that time in which this process was stopped does not count.
  for (const [rank, count] of quiet) {
    quiet.set(rank, count + 1);
    if (count >= order.silentIntervals) Atomics.store(order.silent, rank, 1);
  }
}

self.onmessage = async ({ data }) => {
  if (data.kind === "open") {
    // the network reports undelivered datagrams as socket errors; the socket continues to work
    const handlers = { data: (_: unknown, bytes: Buffer) => hear(bytes.toString("latin1")), error: () => undefined };
    socket = await Bun.udpSocket({ hostname: "0.0.0.0", port: 0, socket: handlers });
    self.postMessage(socket.port);
    return;
  }
  expected = data.token;
  for (const datagram of early.splice(0)) hear(datagram);
  beat(data);
  setInterval(() => beat(data), data.interval);
};
