/** The main thread's side of the front. The front is the thread that accepts connections (`front_main.ts`). */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { ArgumentError } from "../core/errors.ts";
import { moduleFile } from "../core/place.ts";
import type { Admitted, Answered, FromFront, Head, Listening, ToFront } from "./front_messages.ts";

/** A complete request to the API. */
export interface ApiRequest {
  readonly path: string;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** Handles what the front sends. */
export interface Handlers {
  /** Returns the answer to a request; it never rejects. */
  answer(request: ApiRequest): Promise<Response>;
  /** Called before each request. @param open the number of requests being answered */
  counted(open: number, answered: Answered): void;
}

export class Front {
  private readonly worker = new Worker(moduleFile("serve/front_main"));
  /** The requests being answered. */
  private readonly controllers = new Map<number, AbortController>();
  private readonly closing = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  private readonly listening = Promise.withResolvers<string>();
  private readonly idle = Promise.withResolvers<void>();
  private readonly stopped = Promise.withResolvers<void>();

  /** Resolves when the last request so far starts. Each request starts in a separate turn of the event loop. */
  private turn: Promise<void> = Promise.resolve();

  private constructor(private readonly handlers: Handlers) {
    this.worker.onmessage = ({ data }: MessageEvent<FromFront>) => this.read(data);
    this.worker.onerror = ({ message }) => {
      this.listening.reject(new Error(message));
      throw new Error(`serve: the thread that accepts connections failed: ${message}`);
    };
  }

  /** Starts to listen. @returns the front, and the server's URL @throws {ArgumentError} `portTaken` */
  static async open(listening: Omit<Listening, "closing">, handlers: Handlers): Promise<readonly [Front, string]> {
    const front = new Front(handlers);
    front.send({ kind: "listen", listening: { ...listening, closing: front.closing } });
    try {
      return [front, await front.listening.promise];
    } catch (cause) {
      front.worker.terminate();
      const { host, port } = listening;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new ArgumentError("serve", "portTaken", `the server can't listen on ${host}:${port}: ${reason}`, { cause });
    }
  }

  private send(message: ToFront, transfer: ArrayBuffer[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private read(message: FromFront): void {
    if (message.kind === "request") {
      this.handlers.counted(message.open, message.answered);
      void this.answer(message.request);
    } else if (message.kind === "left") this.controllers.get(message.id)?.abort();
    else if (message.kind === "listening") this.listening.resolve(message.url);
    else if (message.kind === "failed") this.listening.reject(new Error(message.reason));
    else if (message.kind === "idle") this.idle.resolve();
    else this.stopped.resolve();
  }

  private async answer({ id, path, headers, body }: Admitted): Promise<void> {
    const controller = new AbortController();
    this.controllers.set(id, controller);
    // Requests that arrive together start in separate turns: each may take tens of milliseconds to read.
    this.turn = this.turn.then(() => yieldToEventLoop());
    await this.turn;
    try {
      const request = { path, headers: new Headers(headers), body };
      const response = await this.handlers.answer({ ...request, signal: controller.signal });
      await this.give(id, response, controller.signal);
    } finally {
      this.controllers.delete(id);
    }
  }

  /** Sends an answer: a stream of events in parts, as they are written, and others at once. */
  private async give(id: number, response: Response, signal: AbortSignal): Promise<void> {
    const head: Head = { status: response.status, headers: [...response.headers] };
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
      const bytes = await response.arrayBuffer();
      return this.send({ kind: "whole", id, head, body: new Uint8Array(bytes) }, [bytes]);
    }
    this.send({ kind: "stream", id, head });
    const reader = response.body!.getReader();
    signal.addEventListener("abort", () => void reader.cancel());
    if (signal.aborted) await reader.cancel();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      this.send({ kind: "part", id, part: value });
    }
    this.send({ kind: "end", id });
  }

  /** Rejects new requests, and waits up to `seconds` for those in progress. */
  async close(seconds: number): Promise<void> {
    Atomics.store(this.closing, 0, 1);
    this.send({ kind: "close", seconds });
    await this.idle.promise;
  }

  /** Closes all connections and ends the thread. */
  async stop(): Promise<void> {
    this.send({ kind: "stop" });
    await this.stopped.promise;
    this.worker.terminate();
  }
}
