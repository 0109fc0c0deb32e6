import type { Listener, RunEvent } from "../events.ts";

/**
 * Tells several listeners. One that fails (a full disk, say) is told nothing more, and the others that it failed: what shows a run must not
 * end it.
 */
export class Listeners implements Listener {
  private readonly failed = new Set<Listener>();
  private isClosed = false;

  constructor(private readonly all: readonly Listener[]) {}

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

  /** Closes each of them; what is called again does nothing. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    for (const listener of this.all) {
      try {
        await listener.close?.();
      } catch (error) {
        console.error(`${nameOf(listener)} failed at the end: ${reasonOf(error)}`);
      }
    }
  }
}

const nameOf = (listener: Listener): string => listener.constructor.name;
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
