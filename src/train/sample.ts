import { generateText } from "../nn/generation/text.ts";
import type { Session } from "./session.ts";

/** What the model writes after the prompt, the same whenever it is asked at the same step. Leaves the run's random numbers alone. */
export async function writeSample({ model, tokenizer, settings, step }: Session): Promise<string> {
  const { prompt, sampleTokens: maxTokens, temperature, seed } = settings;
  const pieces: string[] = [];
  for await (const piece of generateText(model, tokenizer, prompt, { maxTokens, temperature, seed: seed + step }))
    pieces.push(piece);
  return pieces.join("");
}
