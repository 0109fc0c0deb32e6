/** `orchard generate`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import { ggmlFormats } from "../quant/formats.ts";
import type { GenerateFlags } from "../train/generate.ts";
import { parseNumber } from "./number.ts";
import { MODEL, offlineOption } from "./pull.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);

export function addGenerateCommand(program: Command): void {
  program
    .command("generate")
    .description("generate text with a model trained here or a pretrained one")
    .argument(
      "[run]",
      `a run, a checkpoint, a file written by \`quantize\`, or a pretrained model: ${MODEL} ` +
        "(default: the latest run in runs/)",
    )
    .option("--prompt <text>", "text to continue", "export ")
    .addOption(numeric("--tokens <count>", "maximum number of tokens to generate").default(500))
    .addOption(numeric("--temperature <number>", "sampling temperature; 0: greedy decoding").default(0.8))
    .addOption(numeric("--top-k <count>", "sample from the k most likely tokens"))
    .addOption(
      numeric("--top-p <probability>", "sample from the most likely tokens whose probabilities add up to this"),
    )
    .addOption(numeric("--repetition-penalty <factor>", "above 1: make tokens that already occurred less likely"))
    .addOption(numeric("--seed <number>", "random seed; the same seed generates the same text"))
    .option("--stats", "print tokens per second and the size of the weights (always on with quantized weights)")
    .addOption(
      new Option(
        "--precision <name>",
        "precision of products with quantized weights; fast rounds activations to 8 bits",
      )
        .choices(["exact", "fast"])
        .default("exact"),
    )
    .option("--adapter <folder>", "for a pretrained model: folder of a LoRA adapter in PEFT's format")
    .addOption(new Option("--quantize <format>", "for a pretrained model: quantize its weights").choices(ggmlFormats))
    .addOption(offlineOption())
    .addOption(new Option("--backend <name>", "backend to run on").choices(backendNames))
    .action(async (run: string | undefined, flags: GenerateFlags) => {
      const { runGenerate } = await import("../train/generate.ts");
      process.exitCode = await runGenerate(run, flags);
    });
}
