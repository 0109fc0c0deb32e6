/**
 * The front: a thread that accepts connections, checks requests, reads their bodies and answers `/health`. The main
 * thread, which computes, gets complete requests that were admitted.
 */
import { Access } from "./access.ts";
import { ApiError, apiErrorOf, busy } from "./api_error.ts";
import type { FromFront, Head, Listening, ToFront } from "./front_messages.ts";
import { readBytes } from "./read_bytes.ts";
import { Relay, type Relayed } from "./relay.ts";

declare const self: {
  onmessage: (event: MessageEvent<ToFront>) => void;
  postMessage(message: FromFront, transfer?: ArrayBuffer[]): void;
};

/** A comment in a stream of events, which clients skip. */
const COMMENT = new TextEncoder().encode(":\n\n");

/** Milliseconds for the last bytes to be sent after the last answer. */
const FLUSH = 500;

/** An answer that the main thread computes. */
interface Pending {
  readonly respond: (response: Response) => void;
  readonly connection: Relayed | undefined;
  /** Whether the model computes the answer. */
  readonly isAdmitted: boolean;
  stream?: ReadableStreamDefaultController<Uint8Array>;
}

/** Returns the path of a request. @throws {ApiError} 400 for an invalid Host or path */
function pathOf({ url }: Request): string {
  if (!URL.canParse(url)) throw new ApiError(400, "expected a valid Host and path", "invalid_request");
  try {
    return decodeURIComponent(new URL(url).pathname);
  } catch {
    throw new ApiError(400, "expected a valid path", "invalid_request");
  }
}

class Front {
  private readonly access: Access;
  /** Listens at an address that only the relay uses. */
  private readonly server: Bun.Server<undefined>;
  private readonly pending = new Map<number, Pending>();
  private answered = new Map<string, Map<number, number>>();
  /** The number of requests being answered, and how many of them the model answers. */
  private open = 0;
  private admitted = 0;
  private lastId = 0;
  private onIdle: (() => void) | undefined;
  private relay: Relay | undefined;

  private constructor(private readonly listening: Listening) {
    this.access = new Access(listening);
    const maxRequestBodySize = Number.MAX_SAFE_INTEGER; // so that oversized bodies get an error in the API's format
    const fetch = (request: Request, server: Bun.Server<undefined>) => {
      server.timeout(request, 0); // a request may wait in the queue; it has a separate time limit
      return this.answer(request, this.relay!.at(server.requestIP(request)?.port));
    };
    this.server = Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, maxRequestBodySize, fetch });
  }

  /** Starts to listen. @throws {Error} if the address is not available */
  static async open(listening: Listening): Promise<Front> {
    const front = new Front(listening);
    try {
      front.relay = await Relay.listen(listening.host, listening.port, front.server.port!);
    } catch (cause) {
      await front.server.stop(true);
      throw cause;
    }
    return front;
  }

  private get isClosing(): boolean {
    return Atomics.load(this.listening.closing, 0) === 1;
  }

  get url(): string {
    const { host } = this.listening;
    return `http://${host.includes(":") ? `[${host}]` : host}:${this.relay!.port}`;
  }

  private async answer(request: Request, connection: Relayed | undefined): Promise<Response> {
    connection?.opened();
    const response = await this.responseTo(request, connection);
    if (response.headers.get("Connection") === "close") connection?.refuse();
    else if (connection?.isEnded) response.headers.set("Connection", "close");
    return response;
  }

  /** Answers every request, also after errors. */
  private async responseTo(request: Request, connection: Relayed | undefined): Promise<Response> {
    this.open++;
    let path = "unknown";
    try {
      const found = pathOf(request);
      if (this.listening.doors.has(found)) path = found;
      const own = this.ownAnswer(request, found);
      if (!own) return this.withCors(request, await this.admit(request, path, connection));
      this.count(path, own.status);
      this.leave(connection);
      return this.withCors(request, own);
    } catch (error) {
      const { status, body, headers } = apiErrorOf(error);
      if (status === 500) console.error("serve:", error);
      this.count(path, status);
      this.leave(connection);
      return this.withCors(request, Response.json(body, { status, headers }));
    }
  }

  private withCors(request: Request, response: Response): Response {
    for (const [name, value] of Object.entries(this.access.corsHeaders(request))) response.headers.set(name, value);
    return response;
  }

  /** Answers a request that needs no model, or returns undefined for an admitted one. @throws {ApiError} */
  private ownAnswer(request: Request, path: string): Response | undefined {
    this.access.checkOrigin(request);
    if (request.method === "OPTIONS") return new Response(null, { status: 204 });
    const door = this.listening.doors.get(path);
    if (!door) throw new ApiError(404, `expected a path of the API, got ${JSON.stringify(path.slice(0, 200))}`);
    if (request.method !== door.method)
      throw new ApiError(405, `expected ${door.method}, got ${request.method}`, null, null, { Allow: door.method });
    if (door.needsKey) this.access.checkKey(request);
    if (path === "/health") {
      const status = this.isClosing ? "closing" : "ok";
      return Response.json({ status }, { status: this.isClosing ? 503 : 200 });
    }
    if (door.method === "GET") return undefined;
    if (this.isClosing) throw new ApiError(503, "the server is shutting down", "shutting_down");
    const most = this.listening.connections;
    if (this.admitted >= most) throw busy(`expected at most ${most} requests at a time; try again later`);
    return undefined;
  }

  /** Reads a body, and lets the main thread answer the request. @throws {ApiError} for the body */
  private async admit(request: Request, path: string, connection: Relayed | undefined): Promise<Response> {
    const { doors, bodySeconds } = this.listening;
    const most = doors.get(path)!.bodyBytes;
    if (most === undefined) return this.forwarded(request, path, new Uint8Array(), connection);
    this.admitted++;
    try {
      const body = await readBytes(request, most, bodySeconds, connection);
      return await this.forwarded(request, path, body, connection);
    } catch (error) {
      this.admitted--;
      throw error;
    }
  }

  private forwarded(
    request: Request,
    path: string,
    body: Uint8Array<ArrayBuffer>,
    connection: Relayed | undefined,
  ): Promise<Response> {
    const id = ++this.lastId;
    const { promise, resolve } = Promise.withResolvers<Response>();
    this.pending.set(id, { respond: resolve, connection, isAdmitted: request.method === "POST" });
    const left = () => self.postMessage({ kind: "left", id });
    request.signal.addEventListener("abort", left);
    const counts = this.answered;
    this.answered = new Map();
    const admitted = { id, path, headers: [...request.headers], body };
    self.postMessage({ kind: "request", request: admitted, open: this.open, answered: counts }, [body.buffer]);
    if (request.signal.aborted) left();
    return promise;
  }

  /** Counts an answer of the front for the server's metrics. */
  private count(path: string, status: number): void {
    const statuses = this.answered.get(path) ?? new Map<number, number>();
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    this.answered.set(path, statuses);
  }

  private leave(connection: Relayed | undefined): void {
    connection?.answered();
    if (--this.open === 0) this.onIdle?.();
  }

  /** Returns a request that waits for its answer. @throws {Error} if it was answered */
  private pendingOf(id: number): Pending {
    const pending = this.pending.get(id);
    if (!pending) throw new Error(`the request ${id} does not wait for an answer`);
    return pending;
  }

  /** Answers with a complete body. */
  whole(id: number, { status, headers }: Head, body: Uint8Array<ArrayBuffer>): void {
    this.pendingOf(id).respond(new Response(body.length > 0 ? body : null, { status, headers }));
    this.end(id);
  }

  /** Starts an answer whose parts follow. */
  stream(id: number, { status, headers }: Head): void {
    const pending = this.pendingOf(id);
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        pending.stream = controller;
        if (pending.connection) pending.connection.comment = () => pending.stream?.enqueue(COMMENT);
      },
      cancel: () => {
        delete pending.stream;
        self.postMessage({ kind: "left", id });
      },
    });
    pending.respond(new Response(body, { status, headers }));
  }

  part(id: number, part: Uint8Array): void {
    this.pending.get(id)?.stream?.enqueue(part);
  }

  end(id: number): void {
    const { stream, isAdmitted, connection } = this.pendingOf(id);
    stream?.close();
    this.pending.delete(id);
    if (isAdmitted) this.admitted--;
    this.leave(connection);
  }

  /** Waits for the requests in progress; new ones are rejected already. */
  async close(seconds: number): Promise<void> {
    if (this.open > 0)
      await new Promise<void>((resolve) => {
        this.onIdle = resolve;
        setTimeout(resolve, seconds * 1000);
      });
    self.postMessage({ kind: "idle" });
  }

  /** Closes all connections, once the last bytes are sent. */
  async stop(): Promise<void> {
    const deadline = performance.now() + FLUSH;
    while (this.server.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(10);
    // Bun may wait without end for a connection that its client has closed.
    for (const atOnce of [false, true]) await Promise.race([this.server.stop(atOnce), Bun.sleep(FLUSH / 5)]);
    await this.relay!.stop(FLUSH);
    self.postMessage({ kind: "stopped" });
  }
}

let front: Front | undefined;

async function listen(listening: Listening): Promise<void> {
  try {
    front = await Front.open(listening);
    self.postMessage({ kind: "listening", url: front.url });
  } catch (cause) {
    self.postMessage({ kind: "failed", reason: cause instanceof Error ? cause.message : String(cause) });
  }
}

self.onmessage = ({ data }) => {
  if (data.kind === "listen") void listen(data.listening);
  if (front === undefined) return;
  if (data.kind === "whole") front.whole(data.id, data.head, data.body);
  else if (data.kind === "stream") front.stream(data.id, data.head);
  else if (data.kind === "part") front.part(data.id, data.part);
  else if (data.kind === "end") front.end(data.id);
  else if (data.kind === "close") void front.close(data.seconds);
  else void front.stop();
};
