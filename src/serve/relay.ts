/**
 * Relays connections to a server of Bun, which drops a connection, with the answer, when its client ends the sending
 * side (`shutdown(2)`). The relay keeps it open until the answer is sent, and tells such a client from one that
 * disconnected: only the latter's system resets the connection when bytes are sent to it.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/** An interim response (RFC 9110, 15.2.1), which clients skip. */
const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";
/** Milliseconds before the first interim response, and between two of them. */
const [FIRST, AGAIN] = [20, 1000];

/** Milliseconds in which the bytes of a client that has ended its sending side reach the server. */
const GRACE = 1000;

/** Milliseconds in which a client may read an answer that came before its request was complete. */
const LINGER = 5000;

/** A connection, from its client's side. */
export class Relayed {
  /** Whether the client sends no more. */
  isEnded = false;
  /** Adds a comment to an answer that is a stream. */
  comment: (() => void) | undefined;
  /** Ends the reading of a body: the server has everything that the client will ever send. */
  sentAll: (() => void) | undefined;
  /** Whether the client has sent bytes to which there is no complete answer yet. */
  private isWaiting = false;
  /** Whether the server handles a request, and whether it has sent a part of the answer. */
  private isOpen = false;
  private isAnswering = false;

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
  ) {
    for (const socket of [client, server]) socket.setNoDelay(true);
    client.pipe(server, { end: false });
    server.pipe(client);
    client.on("data", () => {
      this.isWaiting = true;
    });
    server.on("data", () => {
      this.isAnswering = true;
    });
    client.on("end", () => this.ended());
    client.on("close", () => server.destroy());
    client.on("error", () => server.destroy());
    // A server that answers before it has read the request resets the connection after its answer.
    server.on("error", () => client.end());
  }

  private ended(): void {
    this.isEnded = true;
    if (!this.isWaiting) {
      this.client.destroy();
      return;
    }
    this.probe(FIRST);
    setTimeout(() => {
      this.sentAll?.();
      if (this.isWaiting && !this.isOpen) this.client.destroy(); // no complete head came
    }, GRACE).unref();
  }

  /** Sends bytes without meaning until the answer is complete. A client that disconnected resets the connection. */
  private probe(milliseconds: number): void {
    setTimeout(() => {
      if (this.client.destroyed || !this.isWaiting) return;
      if (this.isAnswering) this.comment?.();
      else if (this.isOpen) this.client.write(CONTINUE);
      this.probe(AGAIN);
    }, milliseconds).unref();
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

  /** The server has answered the request. */
  answered(): void {
    [this.isOpen, this.isWaiting, this.comment] = [false, false, undefined];
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
      server.on("close", () => this.connections.delete(port));
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
