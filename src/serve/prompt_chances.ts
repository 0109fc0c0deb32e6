/** Computes the probabilities of prompt tokens. */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../autograd/modes.ts";
import { chancesOf, type GeneratedToken } from "../nn/generation/sequence.ts";
import { inEvaluation } from "../nn/layers/module.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import { tensor } from "../ops/creation/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { ApiError } from "./api_error.ts";

/** Tokens per forward pass. Other requests wait for a pass, and each token needs logits over the vocabulary. */
const CHUNK = 64;

/**
 * Computes the log probabilities of a prompt's tokens. The first has none, since nothing precedes it.
 *
 * @param count the number of most likely tokens to return for each position
 *
 * @throws {ApiError} 503 if the signal is aborted
 */
export async function promptChances(
  model: LanguageModel,
  prompt: readonly number[],
  count: number,
  signal: AbortSignal,
): Promise<GeneratedToken[]> {
  using cache = model.newCache();
  const found: GeneratedToken[] = [{ token: prompt[0] }];
  for (let start = 0; start < prompt.length - 1; start += CHUNK) {
    await yieldToEventLoop();
    if (signal.aborted) throw new ApiError(503, "the time limit was exceeded", "timeout");
    const chunk = prompt.slice(start, Math.min(start + CHUNK, prompt.length - 1));
    const compute = () => model.forward(tensor([chunk], { dtype: "int32" }), { cache });
    using logits = tidy(() => noGrad(() => inEvaluation(model, compute)));
    const values = (await logits.data()) as Float32Array;
    for (const at of chunk.keys()) {
      const [token, row] = [prompt[start + at + 1], at * model.vocabularySize];
      found.push({ token, ...chancesOf(values.subarray(row, row + model.vocabularySize), token, count) });
    }
  }
  return found;
}
