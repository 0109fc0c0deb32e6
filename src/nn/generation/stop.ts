/** Finds stop texts in generated text. */

/**
 * @internal Searches a stream of text pieces for the first of several stop texts. The end of a piece is held back while
 * it may be the beginning of a stop text.
 */
export class StopFinder {
  private held = "";
  /** The text from the stop text on. */
  rest = "";

  constructor(private readonly stops: readonly string[]) {}

  /** Adds a piece. Returns the text that is certain to precede any stop text, and whether a stop text was found. */
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

  /** Returns the text that was held back, when no more pieces follow. */
  end(): string {
    const { held } = this;
    this.held = "";
    return held;
  }
}

/** Returns the length of the longest prefix of `stop` that is a suffix of `text`. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--)
    if (text.endsWith(stop.slice(0, length))) return length;
  return 0;
}
