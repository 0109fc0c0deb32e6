/** The names of a head's results. */

/** How scores become results: probabilities that add up to 1, one for each label, or the scores themselves. */
export type LabelScores = "softmax" | "sigmoid" | "identity";

/** The names of a head's results, and how its scores become probabilities. */
export interface EncoderLabels {
  /** The name of each result. */
  readonly names: readonly string[];
  /** How scores become probabilities in `nn.classify`. */
  readonly scores: LabelScores;
  /** How the score of a pair becomes its relevance in `nn.rerank`. */
  readonly relevance: "sigmoid" | "identity";
}
