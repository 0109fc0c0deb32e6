/** `orchard generate`: a trained model writes on, as fast as it computes. */
import { statSync } from "node:fs";
import type { BackendName } from "../backend/names.ts";
import { setBackend } from "../backend/policy.ts";
import { generateText } from "../nn/generation/text.ts";
import { Generator } from "../random/generator.ts";
import { reportErrors } from "./errors.ts";
import { checkpointsIn, findRun } from "./folder.ts";
import { makeModel } from "./model.ts";
import { loadRun } from "./session.ts";
import { tokenizerOf } from "./text.ts";

/** What the command line says of the text. */
export interface GenerateOptions {
  readonly prompt: string;
  readonly tokens: number;
  readonly temperature: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly repetitionPenalty?: number;
  readonly seed?: number;
  readonly backend?: BackendName;
}

/** Returns the exit code. @param named a run's folder or a checkpoint's file; the latest run where it is left out */
export function runGenerate(named: string | undefined, options: GenerateOptions): Promise<number> {
  return reportErrors(async () => {
    if (options.backend) setBackend(options.backend);
    const { model, tokenizer } = await loadModel(named);
    const { prompt, tokens: maxTokens, backend: _, ...sampling } = options;
    process.stdout.write(prompt);
    for await (const piece of generateText(model, tokenizer, prompt, { ...sampling, maxTokens }))
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
