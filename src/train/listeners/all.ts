import type { Listener, RunEvent } from "../events.ts";

/**
 * Tells several listeners. One that fails (a full disk, say) is told nothing more, and the others that it failed: what shows a run must not
 * end it.
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

  /** Closes each once, however often it is called. */
  async close(): Promise<void> {
    for (const listener of this.open.splice(0)) {
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
