import { ArgumentError } from "../../core/errors.ts";
import type { Listener, RunEvent } from "../events.ts";
import page from "./page/page.html";
import { EVENTS_PATH, type Message } from "./protocol.ts";

const TOPIC = "run";
/** How many step events the history keeps. When there are twice as many, every second one is dropped. */
const MAX_STEPS = 10_000;

/** Serves a page with the live curves of a run to browsers on this machine, until `close()`. */
export class Dashboard implements Listener {
  private history: RunEvent[] = [];
  private readonly server: Bun.Server<undefined>;

  /** @param port 0 for any free port. @throws {ArgumentError} for a port in use. */
  constructor(port = 0) {
    this.server = serve(port, () => this.history);
  }

  get url(): string {
    return this.server.url.href;
  }

  on(event: RunEvent): void {
    this.history.push(event);
    if (this.history.length > 2 * MAX_STEPS) this.history = downsample(this.history);
    this.server.publish(TOPIC, encode([event]));
  }

  close(): Promise<void> {
    return this.server.stop(true);
  }
}

function serve(port: number, history: () => Message): Bun.Server<undefined> {
  try {
    return Bun.serve({
      port,
      hostname: "127.0.0.1",
      development: false,
      routes: { "/": page },
      fetch: (request, server) =>
        new URL(request.url).pathname === EVENTS_PATH && server.upgrade(request)
          ? undefined
          : new Response("Not found.\n", { status: 404 }),
      websocket: {
        open(socket) {
          socket.send(encode(history()));
          socket.subscribe(TOPIC);
        },
        message: () => undefined, // pages send no messages
      },
    });
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
