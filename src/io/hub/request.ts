/** Requests to a hub: redirects, the token, and servers that answer slowly or not at all. */
import { DownloadError } from "./errors.ts";

/** What requests need. */
export interface Connection {
  /** Such as `http://127.0.0.1:8080`, without a slash at the end. */
  readonly endpoint: string;
  readonly token: string | undefined;
  /** After so many milliseconds without a byte, a request is given up. */
  readonly stallMilliseconds: number;
  readonly signal: AbortSignal | undefined;
}

/** An answer, and what ends it. */
export interface Answer {
  readonly response: Response;
  /** Called for each part of the body that comes: the time begins anew. */
  readonly heard: () => void;
  /** Ends the request. */
  readonly end: () => void;
}

const MOST_REDIRECTS = 5;

/** Follows redirects. The token goes to the endpoint alone. @throws {DownloadError} */
export async function request(connection: Connection, url: string, headers: Record<string, string>): Promise<Answer> {
  const { endpoint, token, stallMilliseconds, signal } = connection;
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener("abort", abort);
  const stalled = () => controller.abort(new DownloadError("stalled", url, `nothing came for ${stallMilliseconds} ms`));
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
      const isOwn = at.origin === new URL(endpoint).origin;
      const own = {
        "accept-encoding": "identity",
        ...headers,
        ...(isOwn && token && { authorization: `Bearer ${token}` }),
      };
      const response = await fetch(at, { redirect: "manual", headers: own, signal: controller.signal });
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

/** What a request that was given up failed with: the caller's reason, that it stalled, or the network's error. */
export function failureOf(
  cause: unknown,
  own: AbortSignal | undefined,
  signal: AbortSignal | undefined,
  url: string,
): unknown {
  if (signal?.aborted) return signal.reason;
  if (own?.aborted && own.reason instanceof DownloadError) return own.reason;
  if (cause instanceof DownloadError) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new DownloadError("brokenOff", url, `the connection failed: ${message}`, { cause });
}

/** @throws {DownloadError} for anything but success, saying what to do. */
export function checkStatus(response: Response, url: string): void {
  const { status } = response;
  if (response.ok) return;
  const hints: Readonly<Record<number, string>> = {
    401: "the hub wants a token: set HF_TOKEN",
    403: "this token has no access: accept the model's terms on its page, or set another HF_TOKEN",
    404: "there is no such model, revision or file",
    429: "too many requests: wait, and try again",
  };
  const code = status >= 500 || status === 429 || status === 408 ? "unavailable" : "refused";
  throw new DownloadError(
    code,
    url,
    `expected an answer of 200, got ${status}${hints[status] ? `; ${hints[status]}` : ""}`,
  );
}
