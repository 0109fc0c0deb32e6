/** `orchard merge`: the command line. */
import type { Command } from "commander";

export function addMergeCommand(program: Command): void {
  program
    .command("merge")
    .description("write a model with what an adapter learned in its weights")
    .argument("<model>", "a folder of Hugging Face, or a .gguf file")
    .argument("<adapter>", "a folder of PEFT's format, such as that of a run")
    .helpOption("--help", "show this help")
    .requiredOption("--out <folder>", "the folder that is written, or for a .gguf file another one")
    .action(async (model: string, adapter: string, flags: { readonly out: string }) => {
      const { runMerge } = await import("../train/tuning/merge.ts");
      process.exitCode = await runMerge(model, adapter, flags);
    });
}
