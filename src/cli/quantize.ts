/** `orchard quantize`: the command line. */
import { type Command, Option } from "commander";
import { affineBits, ggmlFormats, groupSizes } from "../quant/formats.ts";
import type { QuantizeFlags } from "../train/quantize.ts";
import { parseNumber } from "./number.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);

export function addQuantizeCommand(program: Command): void {
  program
    .command("quantize")
    .description("write the weights of a trained model in a few bits each, for `generate`")
    .argument("[run]", "a run's folder or a checkpoint file (default: the latest run in runs/)")
    .helpOption("--help", "show this help")
    .addOption(
      new Option("--format <name>", "blocks (GGUF), or groups with scales (safetensors, as MLX)")
        .choices([...ggmlFormats, "affine", "symmetric"])
        .default("q4_0"),
    )
    .addOption(numeric("--bits <count>", `of groups: ${affineBits.join(", ")}`).default(4))
    .addOption(numeric("--group-size <count>", `values of a group: ${groupSizes.join(", ")}`).default(64))
    .option("--include <layers...>", "quantise these layers alone, such as blocks.0")
    .option("--exclude <layers...>", "leave these layers as they are")
    .option("--out <file>", "a .gguf or .safetensors file (default: in the run's folder)")
    .action(async (run: string | undefined, flags: QuantizeFlags) => {
      const { runQuantize } = await import("../train/quantize.ts");
      process.exitCode = await runQuantize(run, flags);
    });
}
