/** The messages between a server and its front, the thread that accepts connections. */

/** A path of the API, as the front checks it. */
export interface Door {
  readonly method: "GET" | "POST";
  readonly needsKey: boolean;
  /** Maximum bytes of a body; undefined if bodies are ignored. */
  readonly bodyBytes?: number | undefined;
}

/** What the front needs to listen, and to check requests. */
export interface Listening {
  readonly host: string;
  readonly port: number;
  readonly key: string | undefined;
  readonly origins: readonly string[];
  readonly isLoopback: boolean;
  /** Maximum number of simultaneous requests. */
  readonly connections: number;
  /** Maximum seconds for a body to arrive. */
  readonly bodySeconds: number;
  readonly doors: ReadonlyMap<string, Door>;
  /** Shared by both threads: its element is 1 once the server closes. */
  readonly closing: Int32Array<SharedArrayBuffer>;
}

/** A complete request that the front has admitted. */
export interface Admitted {
  readonly id: number;
  readonly path: string;
  readonly headers: [string, string][];
  readonly body: Uint8Array<ArrayBuffer>;
}

/** The status and headers of an answer. */
export interface Head {
  readonly status: number;
  readonly headers: [string, string][];
}

/** The number of requests that the front answered by itself since its last message, by path and status. */
export type Answered = ReadonlyMap<string, ReadonlyMap<number, number>>;

export type ToFront =
  | { readonly kind: "listen"; readonly listening: Listening }
  | { readonly kind: "whole"; readonly id: number; readonly head: Head; readonly body: Uint8Array<ArrayBuffer> }
  | { readonly kind: "stream"; readonly id: number; readonly head: Head }
  | { readonly kind: "part"; readonly id: number; readonly part: Uint8Array }
  | { readonly kind: "end"; readonly id: number }
  | { readonly kind: "close"; readonly seconds: number }
  | { readonly kind: "stop" };

export type FromFront =
  | { readonly kind: "listening"; readonly url: string }
  | { readonly kind: "failed"; readonly reason: string }
  | {
      readonly kind: "request";
      readonly request: Admitted;
      /** The number of requests being answered. */
      readonly open: number;
      readonly answered: Answered;
    }
  | { readonly kind: "left"; readonly id: number }
  /** After `close`: no request is being answered, or the time is over. */
  | { readonly kind: "idle" }
  /** After `stop`: all connections are closed. */
  | { readonly kind: "stopped" };
