/** `orchard generate`: its options on the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import type { GenerateOptions } from "../train/generate.ts";
import { parseNumber } from "./number.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);

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
    .action(async (run: string | undefined, options: GenerateOptions) => {
      const { runGenerate } = await import("../train/generate.ts");
      process.exitCode = await runGenerate(run, options);
    });
}
