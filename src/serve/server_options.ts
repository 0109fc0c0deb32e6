import type { BatcherOptions } from "../nn/generation/batcher.ts";
import type { Limits } from "./limits.ts";

/** The address, access and limits of a server. */
export interface ServerOptions {
  /** The address to listen on. Default 127.0.0.1; any other requires a key. */
  readonly host?: string | undefined;
  /** The port. Default 8080; 0 for any free port. */
  readonly port?: number | undefined;
  readonly key?: string | undefined;
  /** The origins of web pages that may send requests. Default: none. */
  readonly origins?: readonly string[] | undefined;
  readonly batcher?: BatcherOptions | undefined;
  readonly limits?: Partial<Limits> | undefined;
}
