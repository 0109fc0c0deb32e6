/** Requests to a hub: redirects, the token, and servers that stall. */
import { DownloadError } from "./errors.ts";

/** The settings of requests. */
export interface Connection {
  /** The origin, such as `http://127.0.0.1:8080`, without a trailing slash. */
  readonly endpoint: string;
  readonly token: string | undefined;
  /** The time without a byte after which a request is aborted, in milliseconds. */
  readonly stallMilliseconds: number;
  readonly signal: AbortSignal | undefined;
}

/** A response, with functions to control its request. */
export interface Answer {
  readonly response: Response;
  /** Call this for each part of the body: it restarts the stall timer. */
  readonly heard: () => void;
  /** Ends the request. */
  readonly end: () => void;
}

const MOST_REDIRECTS = 5;

/** Sends a request, and follows redirects. The token is sent only to the endpoint. @throws {DownloadError} */
export async function request(connection: Connection, url: string, headers: Record<string, string>): Promise<Answer> {
  const { endpoint, token, stallMilliseconds, signal } = connection;
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener("abort", abort);
  const stalled = () =>
    controller.abort(new DownloadError("stalled", url, `no data arrived for ${stallMilliseconds} ms`));
  let timer = setTimeout(stalled, stallMilliseconds);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(stalled, stallMilliseconds);
  };
  const end = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    controller.abort();
  };
  try {
    signal?.throwIfAborted();
    let at = new URL(url);
    for (let count = 0; count <= MOST_REDIRECTS; count++) {
      const isSameOrigin = at.origin === new URL(endpoint).origin;
      const sentHeaders = {
        "accept-encoding": "identity",
        ...headers,
        ...(isSameOrigin && token && { authorization: `Bearer ${token}` }),
      };
      const response = await fetch(at, { redirect: "manual", headers: sentHeaders, signal: controller.signal });
      heard();
      const next = response.headers.get("location");
      if (response.status < 300 || response.status >= 400 || next === null) return { response, heard, end };
      at = new URL(next, at);
      if (at.protocol !== "http:" && at.protocol !== "https:")
        throw new DownloadError("invalidRedirect", url, `expected a redirect to http or https, got ${at.protocol}`);
    }
    throw new DownloadError("tooManyRedirects", url, `expected at most ${MOST_REDIRECTS} redirects, got more`);
  } catch (cause) {
    end();
    throw failureOf(cause, controller.signal, signal, url);
  }
}

/** Returns the error of a failed request: the caller's abort reason, a stall, or the network's error. */
export function failureOf(
  cause: unknown,
  internalSignal: AbortSignal | undefined,
  signal: AbortSignal | undefined,
  url: string,
): unknown {
  if (signal?.aborted) return signal.reason;
  if (internalSignal?.aborted && internalSignal.reason instanceof DownloadError) return internalSignal.reason;
  if (cause instanceof DownloadError) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new DownloadError("brokenOff", url, `the connection failed: ${message}`, { cause });
}
