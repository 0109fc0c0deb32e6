/** Wraps text that arrives in pieces at word boundaries. */

export class WordWrap {
  private column = 0;
  private word = "";

  /** @param columns the terminal's width; Infinity: don't wrap */
  constructor(private readonly columns: number) {}

  /** Adds a piece. Returns the text to write: all but the last word, which may be incomplete. */
  push(piece: string): string {
    if (this.columns === Number.POSITIVE_INFINITY) return piece;
    let written = "";
    for (const character of piece) {
      if (!/\s/u.test(character)) this.word += character;
      else written += this.flush() + this.space(character);
    }
    return written;
  }

  /** Returns the last word. */
  end(): string {
    return this.flush();
  }

  private flush(): string {
    const width = Bun.stringWidth(this.word);
    const breaks = this.column > 0 && this.column + width > this.columns;
    const written = (breaks ? "\n" : "") + this.word;
    const end = (breaks ? 0 : this.column) + width;
    if (width > 0) this.column = end > this.columns ? end % this.columns : end;
    this.word = "";
    return written;
  }

  private space(character: string): string {
    if (character === "\n") this.column = 0;
    else if (this.column + 1 >= this.columns) return this.space("\n");
    else this.column++;
    return character;
  }
}
