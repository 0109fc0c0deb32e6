/** `orchard generate`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import { ggmlFormats } from "../quant/formats.ts";
import type { GenerateFlags } from "../train/generate.ts";
import { parseNumber } from "./number.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);

export function addGenerateCommand(program: Command): void {
  program
    .command("generate")
    .description("generate text with a trained model, or one that exists")
    .argument(
      "[run]",
      "a run, a checkpoint, a file of `quantize`, or a model that exists (default: the latest run in runs/)",
    )
    .helpOption("--help", "show this help")
    .option("--prompt <text>", "the start of the text", "export ")
    .addOption(numeric("--tokens <count>", "the maximum number of tokens").default(500))
    .addOption(numeric("--temperature <number>", "0: always the most likely token").default(0.8))
    .addOption(numeric("--top-k <count>", "sample from this many most likely tokens"))
    .addOption(numeric("--top-p <probability>", "sample from the most likely tokens with this total probability"))
    .addOption(numeric("--repetition-penalty <factor>", "above 1: previous tokens become less likely"))
    .addOption(numeric("--seed <number>", "the same seed generates the same text"))
    .option("--stats", "tell tokens a second and the bytes of the weights (always, of quantised weights)")
    .addOption(
      new Option("--precision <name>", "of products with quantised weights: fast rounds activations to 8 bits")
        .choices(["exact", "fast"])
        .default("exact"),
    )
    .option("--adapter <folder>", "of a model that exists: what it learned by LoRA, in PEFT's format")
    .addOption(new Option("--quantize <format>", "of a model that exists: quantise its weights").choices(ggmlFormats))
    .addOption(new Option("--backend <name>", "the backend that computes").choices(backendNames))
    .action(async (run: string | undefined, flags: GenerateFlags) => {
      const { runGenerate } = await import("../train/generate.ts");
      process.exitCode = await runGenerate(run, flags);
    });
}
