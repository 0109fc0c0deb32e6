/**
 * Metrics of predictions: accuracy, precision, recall, F1, confusion matrices, ROC AUC, perplexity, word error rates.
 */

export { type AucOptions, rocAuc } from "./auc.ts";
export { accuracy, type ClassOptions, confusionMatrix } from "./confusion.ts";
export { perplexity } from "./perplexity.ts";
export { type Average, f1Score, precision, recall, type ScoreOptions } from "./scores.ts";
export { wordErrorRate } from "./word_error_rate.ts";

import "../ops/methods.ts";
