/** `orchard merge`: the command line. */
import type { Command } from "commander";

export function addMergeCommand(program: Command): void {
  program
    .command("merge")
    .description("merge a LoRA adapter into a model's weights and write the merged model")
    .argument("<model>", "a Hugging Face model folder, a .gguf file, or owner/name on the hub")
    .argument("<adapter>", "an adapter folder in PEFT's format, such as that of a run")
    .requiredOption("--out <folder>", "folder to write; for a .gguf model, the .gguf file to write")
    .action(async (model: string, adapter: string, flags: { readonly out: string }) => {
      const { runMerge } = await import("../train/tuning/merge.ts");
      process.exitCode = await runMerge(model, adapter, flags);
    });
}
