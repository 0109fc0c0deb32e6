import { join } from "node:path";
import { ArgumentError } from "../../core/errors.ts";
import { bundlePage, type Document } from "../../core/page.ts";
import { sourceFolder } from "../../core/place.ts";
import type { Listener, RunEvent } from "../events.ts";
import { Guard } from "./guard.ts";
import { EVENTS_PATH, type Message } from "./protocol.ts";

const TOPIC = "run";
/** Number of step events in the history. When it has twice as many, every second event is dropped. */
const MAX_STEPS = 10_000;

/**
 * Serves a page with the live curves of a run to browsers on this machine, until `close()`. Every request must have the
 * token of {@link url}, a name of the loopback interface as its host, and no foreign origin.
 */
export class Dashboard implements Listener {
  private history: RunEvent[] = [];
  private readonly server: Bun.Server<undefined>;
  private readonly guard: Guard;

  /** @param port 0 for any free port. @throws {ArgumentError} for a port in use. */
  constructor(port = 0) {
    const page = bundlePage(join(sourceFolder, "train", "dashboard", "page", "page.html"));
    page.catch(() => undefined); // requests for the page get the error
    this.server = serve(port, {
      fetch: (request) => this.answer(request, page),
      open: (socket) => {
        socket.send(encode(this.history));
        socket.subscribe(TOPIC);
      },
    });
    this.guard = new Guard(this.server.port!);
  }

  /** The address of the page, with the token. */
  get url(): string {
    return this.guard.address("/");
  }

  on(event: RunEvent): void {
    this.history.push(event);
    if (this.history.length > 2 * MAX_STEPS) this.history = downsample(this.history);
    this.server.publish(TOPIC, encode([event]));
  }

  close(): Promise<void> {
    return this.server.stop(true);
  }

  private async answer(request: Request, page: Promise<Document>): Promise<Response | undefined> {
    const reason = this.guard.reasonAgainst(request);
    if (reason !== undefined) return respond(`Refused: ${reason}.\n`, 403);
    const { pathname } = new URL(request.url);
    if (request.method !== "GET") return respond("Expected GET.\n", 405, { Allow: "GET" });
    if (pathname === EVENTS_PATH)
      return this.server.upgrade(request)
        ? undefined
        : respond("Expected a WebSocket.\n", 426, { Upgrade: "websocket" });
    if (pathname !== "/") return respond("Not found.\n", 404);
    const { html, script, styles } = await page;
    const policy = [
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src data:",
      `script-src ${script}; style-src ${styles}; connect-src 'self' ws://${request.headers.get("host")}`,
    ].join("; ");
    return respond(html, 200, { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy });
  }
}

/** The URL contains the token, so it must not be sent to other servers or cached. */
const PRIVATE = {
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-store",
  "Cross-Origin-Resource-Policy": "same-origin",
  "X-Content-Type-Options": "nosniff",
} as const;

const respond = (text: string, status: number, headers: Record<string, string> = {}): Response =>
  new Response(text, { status, headers: { "Content-Type": "text/plain; charset=utf-8", ...PRIVATE, ...headers } });

interface Handlers {
  readonly fetch: (request: Request) => Promise<Response | undefined>;
  readonly open: (socket: Bun.ServerWebSocket<undefined>) => void;
}

function serve(port: number, { fetch, open }: Handlers): Bun.Server<undefined> {
  const message = () => undefined; // pages send no messages
  try {
    const websocket = { open, message, maxPayloadLength: 1024 };
    return Bun.serve({ port, hostname: "127.0.0.1", development: false, reusePort: false, fetch, websocket });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const text = `the dashboard cannot use port ${port}: ${reason}; choose another port, or 0 for any free port`;
    throw new ArgumentError("train --dashboard", "portTaken", text, { cause });
  }
}

/** In JSON, NaN and ∞ become null, which pages show as a gap. */
const encode = (events: Message): string => JSON.stringify(events);

function downsample(events: readonly RunEvent[]): RunEvent[] {
  let steps = 0;
  return events.filter(({ kind }) => kind !== "step" || steps++ % 2 === 1);
}
