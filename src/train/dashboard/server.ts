import { ArgumentError } from "../../core/errors.ts";
import type { Listener, RunEvent } from "../events.ts";
import page from "./page/page.html";
import { EVENTS_PATH, type Message } from "./protocol.ts";

const TOPIC = "run";
/** Steps that a page is given when it opens; of more, every second one is forgotten. */
const MOST_STEPS = 10_000;

/** A page with the live curves of a run, for this machine's browsers. It goes with the process, or with `close()`. */
export class Dashboard implements Listener {
  private history: RunEvent[] = [];
  private readonly server: Bun.Server<undefined>;

  /** @param port 0 for any that is free. @throws {ArgumentError} for one that is taken. */
  constructor(port = 0) {
    this.server = serve(port, () => this.history);
  }

  get url(): string {
    return this.server.url.href;
  }

  on(event: RunEvent): void {
    this.history.push(event);
    if (this.history.length > 2 * MOST_STEPS) this.history = thinned(this.history);
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
          : new Response("There is nothing here.\n", { status: 404 }),
      websocket: {
        open(socket) {
          socket.send(encode(history()));
          socket.subscribe(TOPIC);
        },
        message: () => undefined, // pages have nothing to say
      },
    });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const text = `no page can be served on port ${port}: ${reason}; name another one, or 0 for any that is free`;
    throw new ArgumentError("train --dashboard", "portTaken", text, { cause });
  }
}

/** JSON has neither NaN nor ∞: a page shows a gap. */
const encode = (events: Message): string => JSON.stringify(events);

function thinned(events: readonly RunEvent[]): RunEvent[] {
  let steps = 0;
  return events.filter(({ kind }) => kind !== "step" || steps++ % 2 === 1);
}
