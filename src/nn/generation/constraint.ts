/** What a text may be, as a rule of which token may follow. `text.compileConstraint` makes them. */

/** A form that texts are held to. It serves any number of texts. */
export interface TokenConstraint {
  /** @internal Begins a text. @param stopTokens of which one may follow where the text is complete */
  start(stopTokens: ReadonlySet<number>): Promise<TokenMatcher>;
}

/** @internal Follows one text. */
export interface TokenMatcher extends Disposable {
  /** Sets the scores of all tokens that must not follow to −∞. */
  forbid(scores: Float64Array): void;
  /** Takes the token that follows, and finds those that may follow it. */
  accept(token: number): Promise<void>;
  /** Whether the text is complete, and nothing may follow. */
  readonly isDone: boolean;
}
