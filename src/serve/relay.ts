/**
 * Relays connections to a server of Bun, which drops a connection, with the answer, when its client ends the sending
 * side (`shutdown(2)`). The relay keeps it open until the answer is sent, and tells such a client from one that
 * disconnected: only the latter's system resets the connection when bytes are sent to it.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/** An interim response (RFC 9110, 15.2.1), which clients skip. */
const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

/** Milliseconds before the first look at a connection whose client sends no more, and between two looks. */
const [FIRST, PAUSE] = [20, 100];

/** Looks between two interim responses. */
const AGAIN = 10;

/**
 * Looks without bytes after which none are on their way. The event loop has a turn between two looks, and moves bytes
 * in each turn, so this also holds if other threads keep the processors for seconds.
 */
const QUIET = 10;

/** Milliseconds in which a client may read the last bytes of a connection that the server has closed. */
const LINGER = 5000;

/** A connection, from its client's side. */
export class Relayed {
  /** Whether the client sends no more. */
  isEnded = false;
  /** Adds a comment to an answer that is a stream. */
  comment: (() => void) | undefined;
  /** Ends the reading of a body: the server has everything that the client will ever send. */
  sentAll: (() => void) | undefined;
  /** Whether the server handles a request, and whether it has sent a part of the answer. */
  private isOpen = false;
  private isAnswering = false;
  /** The number of looks, and of those since the last bytes. */
  private looks = 0;
  private quiet = 0;

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
  ) {
    for (const socket of [client, server]) socket.setNoDelay(true);
    client.pipe(server, { end: false });
    server.pipe(client);
    server.on("data", () => {
      this.isAnswering = true;
      this.quiet = 0;
    });
    client.on("end", () => {
      this.isEnded = true;
      this.lookAfter(FIRST);
    });
    client.on("close", () => server.destroy());
    client.on("error", () => server.destroy());
    server.on("error", () => undefined); // a server that answers before it has read the request; "close" follows
    server.on("close", () => this.finish());
  }

  /** Sends the last bytes, and closes the connection once the client does, or after a time. */
  private finish(): void {
    this.client.resume(); // to see the client close: nothing else reads the bytes that it still sends
    this.client.end(() => setTimeout(() => this.client.destroy(), LINGER).unref());
  }

  /** Looks at the connection of a client that sends no more, until it is closed. */
  private lookAfter(pause: number): void {
    setTimeout(() => {
      const { client, server } = this;
      if (client.destroyed) return;
      this.quiet = client.writableLength + server.writableLength > 0 ? 0 : this.quiet + 1;
      if (this.quiet >= QUIET) this.sentAll?.();
      // The answer was sent, also if the server did not know yet that it is the last one; or a head is incomplete.
      if (this.quiet >= QUIET && !this.isOpen) return this.finish();
      if (this.looks++ % AGAIN === 0 && this.isOpen && this.quiet > 0) this.probe();
      this.lookAfter(PAUSE);
    }, pause).unref();
  }

  /** Sends bytes without meaning before the answer is complete. A client that disconnected resets the connection. */
  private probe(): void {
    if (this.isAnswering) this.comment?.();
    else this.client.write(CONTINUE);
  }

  /** The server closes the connection after its answer, and reads no more: the client's bytes are dropped. */
  refuse(): void {
    this.client.unpipe(this.server);
    this.client.resume();
    setTimeout(() => this.client.destroy(), LINGER).unref();
  }

  /** The server starts to handle a request. */
  opened(): void {
    [this.isOpen, this.isAnswering] = [true, false];
  }

  /** The server has answered the request. Its last bytes may be on their way. */
  answered(): void {
    [this.isOpen, this.quiet, this.comment] = [false, 0, undefined];
  }
}

export class Relay {
  private readonly connections = new Map<number, Relayed>();
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;

  /** @param target the port of a server on the loopback address */
  private constructor(target: number) {
    this.server = createServer({ allowHalfOpen: true }, (client) => {
      const server = connect(target, "127.0.0.1");
      const relayed = new Relayed(client, server);
      this.sockets.add(client);
      let port = 0;
      server.on("connect", () => {
        port = server.localPort!;
        this.connections.set(port, relayed);
      });
      server.on("close", () => {
        if (this.connections.get(port) === relayed) this.connections.delete(port); // the system may reuse the port
      });
      client.on("close", () => this.sockets.delete(client));
    });
  }

  /** Starts to listen. @param target the port of a server on the loopback address */
  static async listen(host: string, port: number, target: number): Promise<Relay> {
    const relay = new Relay(target);
    await new Promise<void>((resolve, reject) => {
      relay.server.once("error", reject);
      relay.server.listen(port, host, resolve);
    });
    return relay;
  }

  get port(): number {
    return (this.server.address() as { readonly port: number }).port;
  }

  /** Returns the connection that the server sees at a port. */
  at(port: number | undefined): Relayed | undefined {
    return this.connections.get(port ?? 0);
  }

  /**
   * Accepts no more connections, and closes those that are open. The server has closed its side of them: clients first
   * get the bytes that it has sent.
   *
   * @param milliseconds how long a client may take to receive them
   */
  async stop(milliseconds: number): Promise<void> {
    this.server.close();
    const deadline = performance.now() + milliseconds;
    const isSending = (client: Socket) => !client.destroyed && !client.writableFinished;
    while ([...this.sockets].some(isSending) && performance.now() < deadline) await Bun.sleep(5);
    for (const client of this.sockets) client.destroy();
  }
}
