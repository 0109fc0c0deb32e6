import { generateText } from "../nn/generation/text.ts";
import type { Session } from "./session.ts";

/**
 * Generates text from the prompt. It depends only on weights, seed and step, and does not use the run's random numbers.
 */
export async function writeSample({ model, tokenizer, settings, step }: Session): Promise<string> {
  const { prompt, sampleTokens: maxTokens, temperature, seed } = settings;
  const pieces: string[] = [];
  for await (const piece of generateText(model, tokenizer, prompt, { maxTokens, temperature, seed: seed + step }))
    pieces.push(piece);
  return pieces.join("");
}
