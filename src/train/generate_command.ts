/** `orchard generate`: the words of the command line. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { backendNames } from "../backend/names.ts";

export interface GenerateWords {
  readonly prompt: string;
  readonly tokens: number;
  readonly temperature: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly repetitionPenalty?: number;
  readonly seed?: number;
  readonly backend?: (typeof backendNames)[number];
}

const number = (word: string): number => {
  const value = Number(word);
  if (word.trim() === "" || Number.isNaN(value)) throw new InvalidArgumentError("It is no number.");
  return value;
};

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(number);

export function addGenerateCommand(program: Command): void {
  program
    .command("generate")
    .description("write text with a trained model, as it comes")
    .argument("[run]", "a run's folder or a checkpoint; by default the latest under runs/")
    .helpOption("--help", "show this")
    .option("--prompt <text>", "what the text begins with", "export ")
    .addOption(numeric("--tokens <count>", "how many at most").default(500))
    .addOption(numeric("--temperature <number>", "0: always the likeliest token").default(0.8))
    .addOption(numeric("--top-k <count>", "choose among the likeliest so many"))
    .addOption(numeric("--top-p <share>", "choose among the likeliest that make up this share"))
    .addOption(numeric("--repetition-penalty <factor>", "above 1: tokens that have come are less likely"))
    .addOption(numeric("--seed <number>", "the same one: the same text"))
    .addOption(new Option("--backend <name>", "what computes").choices(backendNames))
    .action(async (run: string | undefined, words: GenerateWords) => {
      const { runGenerate } = await import("./generate.ts");
      process.exitCode = await runGenerate(run, words);
    });
}
