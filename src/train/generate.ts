/** `orchard generate`: a trained model writes on, as fast as it computes. */
import { statSync } from "node:fs";
import { setBackend } from "../backend/policy.ts";
import { generateText } from "../nn/generation/text.ts";
import { Generator } from "../random/generator.ts";
import { reportErrors } from "./errors.ts";
import { checkpointsIn, findRun } from "./folder.ts";
import type { GenerateWords } from "./generate_command.ts";
import { makeModel } from "./model.ts";
import { loadRun } from "./session.ts";
import { tokenizerOf } from "./text.ts";

/** Returns the exit code. @param named a run's folder or a checkpoint's file; the latest run where it is left out */
export function runGenerate(named: string | undefined, words: GenerateWords): Promise<number> {
  return reportErrors(async () => {
    if (words.backend) setBackend(words.backend);
    const { model, tokenizer } = await loadModel(named);
    const { prompt, tokens: maxTokens, backend: _, ...options } = words;
    process.stdout.write(prompt);
    for await (const piece of generateText(model, tokenizer, prompt, { ...options, maxTokens }))
      process.stdout.write(piece);
    process.stdout.write("\n");
    return 0;
  });
}

async function loadModel(named: string | undefined) {
  const isFile = named !== undefined && statSync(named, { throwIfNoEntry: false })?.isFile();
  const path = isFile ? named : checkpointsIn(findRun("generate", named));
  const { model: weights, extra } = await loadRun(path, "generate");
  const { settings } = extra;
  const tokenizer = tokenizerOf(settings);
  const model = makeModel(settings, tokenizer.vocabularySize, new Generator(0)).eval();
  model.loadStateDict(weights);
  return { model, tokenizer };
}
