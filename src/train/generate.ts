/** `orchard generate`: generates text with a trained model. */
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

/** The flags of the command line. */
export interface GenerateFlags {
  readonly prompt: string;
  readonly tokens: number;
  readonly temperature: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly repetitionPenalty?: number;
  readonly seed?: number;
  readonly backend?: BackendName;
}

/** Returns the exit code. @param named the folder of a run or a checkpoint file; by default the latest run */
export function runGenerate(named: string | undefined, flags: GenerateFlags): Promise<number> {
  return reportErrors(async () => {
    if (flags.backend) setBackend(flags.backend);
    const { model, tokenizer } = await loadModel(named);
    const { prompt, tokens: maxTokens, backend: _, ...options } = flags;
    let pending = prompt; // is written when the flags were found to be valid
    for await (const piece of generateText(model, tokenizer, prompt, { ...options, maxTokens })) {
      process.stdout.write(pending + piece);
      pending = "";
    }
    process.stdout.write(`${pending}\n`);
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
