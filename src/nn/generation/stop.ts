/** Texts that end a text. */

/**
 * @internal Looks for the first of some texts in pieces that come one after the other. What may be the beginning of one
 * is held back.
 */
export class StopFinder {
  private held = "";
  /** The text from the one that was found on. */
  rest = "";

  constructor(private readonly stops: readonly string[]) {}

  /** Adds a piece. Returns what certainly stands before any stop, and whether one was found. */
  push(piece: string): { readonly text: string; readonly found: boolean } {
    const text = this.held + piece;
    const starts = this.stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    if (starts.length > 0) {
      const start = Math.min(...starts);
      this.held = "";
      this.rest = text.slice(start);
      return { text: text.slice(0, start), found: true };
    }
    const keep = Math.max(0, ...this.stops.map((stop) => overlap(text, stop)));
    this.held = text.slice(text.length - keep);
    return { text: text.slice(0, text.length - keep), found: false };
  }

  /** What was held back: no stop came of it. */
  end(): string {
    const { held } = this;
    this.held = "";
    return held;
  }
}

/** The length of the longest beginning of `stop` that ends `text`. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--)
    if (text.endsWith(stop.slice(0, length))) return length;
  return 0;
}
