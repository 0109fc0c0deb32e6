/**
 * The thread of a heartbeat: sends a datagram to other ranks again and again, and counts how long each was not heard.
 * It goes on while the program's own thread computes, and stops where the process does.
 */

/** What the thread is told: first to open its port, then whom to watch. */
export type Order =
  | { readonly kind: "open" }
  | {
      readonly kind: "start";
      /** What datagrams of this world begin with. */
      readonly token: string;
      readonly rank: number;
      readonly others: readonly Address[];
      /** Milliseconds between two datagrams. */
      readonly interval: number;
      /** How many intervals a rank may be silent. */
      readonly silentIntervals: number;
      /** By rank: 1 once it was silent for longer. */
      readonly silent: Int32Array;
    };

/** Where datagrams to a rank go. */
export interface Address {
  readonly rank: number;
  readonly port: number;
  readonly hosts: readonly string[];
}

declare const self: {
  onmessage: (event: MessageEvent<Order>) => void;
  postMessage(port: number): void;
};

/** Intervals since a rank was heard, of those that were heard at all: where datagrams do not pass, none is. */
const quiet = new Map<number, number>();
let [expected, socket] = ["", undefined as Bun.udp.Socket<"buffer"> | undefined];
/** What came before the token was known: others may have begun earlier. */
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
        // no way there now; the rank says by its silence what follows
      }
  // Intervals are counted, not time: a process that was stopped itself has not waited.
  for (const [rank, count] of quiet) {
    quiet.set(rank, count + 1);
    if (count >= order.silentIntervals) Atomics.store(order.silent, rank, 1);
  }
}

self.onmessage = async ({ data }) => {
  if (data.kind === "open") {
    // what a network says of datagrams that did not arrive is an error of the socket, which goes on
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
