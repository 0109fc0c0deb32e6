/**
 * Interfaces of constrained decoding: which tokens may follow the text so far. `text.compileConstraint` implements
 * them.
 */

/**
 * A compiled constraint on generated text, such as a grammar or a JSON schema. It can be used for any number of
 * sequences.
 */
export interface TokenConstraint {
  /** @internal Starts a sequence. @param stopTokens one of these is allowed where the text is complete */
  start(stopTokens: ReadonlySet<number>): Promise<TokenMatcher>;
}

/** @internal The state of a constraint in one sequence. */
export interface TokenMatcher extends Disposable {
  /** Sets the scores of all tokens that are not allowed to −∞. */
  forbid(scores: Float64Array): void;
  /** Advances by a generated token, and computes which tokens are allowed next. */
  accept(token: number): Promise<void>;
  /** Whether the text is complete and no token is allowed. */
  readonly isDone: boolean;
}
