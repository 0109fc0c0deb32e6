/** `orchard quantize`: the command line. */
import { type Command, Option } from "commander";
import { affineBits, ggmlFormats, groupSizes } from "../quant/formats.ts";
import type { QuantizeFlags } from "../train/quantize.ts";
import { parseNumber } from "./number.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);

export function addQuantizeCommand(program: Command): void {
  program
    .command("quantize")
    .description("quantize the weights of a trained model, for use by `generate`")
    .argument("[run]", "a run's folder or a checkpoint file (default: the latest run in runs/)")
    .addOption(
      new Option(
        "--format <name>",
        "a GGUF block format, or affine or symmetric: groups with scales in safetensors, as in MLX",
      )
        .choices([...ggmlFormats, "affine", "symmetric"])
        .default("q4_0"),
    )
    .addOption(
      numeric("--bits <count>", `bits per weight of affine and symmetric: ${affineBits.join(", ")}`).default(4),
    )
    .addOption(
      numeric("--group-size <count>", `weights per group of affine and symmetric: ${groupSizes.join(", ")}`).default(
        64,
      ),
    )
    .option("--include <layers...>", "quantize only these layers, such as blocks.0")
    .option("--exclude <layers...>", "don't quantize these layers")
    .option("--out <file>", "the .gguf or .safetensors file to write (default: in the run's folder)")
    .action(async (run: string | undefined, flags: QuantizeFlags) => {
      const { runQuantize } = await import("../train/quantize.ts");
      process.exitCode = await runQuantize(run, flags);
    });
}
