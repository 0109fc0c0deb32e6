/** Breaks lines between words, of text that comes in pieces. */

export class WordWrap {
  private column = 0;
  private word = "";

  /** @param columns of the terminal, or Infinity, by which text stays as it is */
  constructor(private readonly columns: number) {}

  /** What can be written: all but the last word, which may go on. */
  push(piece: string): string {
    if (this.columns === Number.POSITIVE_INFINITY) return piece;
    let written = "";
    for (const character of piece) {
      if (!/\s/u.test(character)) this.word += character;
      else written += this.flush() + this.space(character);
    }
    return written;
  }

  /** The last word. */
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
