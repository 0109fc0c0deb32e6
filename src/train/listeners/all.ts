import type { Listener, RunEvent } from "../events.ts";

/**
 * Forwards events to several listeners. A listener that throws, for example because the disk is full, gets no further
 * events, and the others get a note. A listener's failure never ends the run.
 */
export class Listeners implements Listener {
  private readonly failed = new Set<Listener>();
  private readonly open: Listener[];

  constructor(private readonly all: readonly Listener[]) {
    this.open = [...all];
  }

  on(event: RunEvent): void {
    for (const listener of this.all) {
      if (this.failed.has(listener)) continue;
      try {
        listener.on(event);
      } catch (error) {
        this.failed.add(listener);
        this.on({ kind: "note", step: event.step, text: `${nameOf(listener)} stopped: ${reasonOf(error)}` });
      }
    }
  }

  /** Closes each listener once, however often it is called. */
  async close(): Promise<void> {
    for (const listener of this.open.splice(0)) {
      try {
        await listener.close?.();
      } catch (error) {
        console.error(`${nameOf(listener)} failed to close: ${reasonOf(error)}`);
      }
    }
  }
}

const nameOf = (listener: Listener): string => listener.constructor.name;
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
