/** `orchard pull`: the command line. */
import type { Command } from "commander";
import { Option } from "commander";
import { parseNumber } from "./number.ts";

/** The options of `orchard pull`. */
export interface PullFlags {
  readonly revision?: string;
  readonly include?: readonly string[];
  readonly timeout: number;
}

/** The help for arguments that name a model. */
export const MODEL = "a Hugging Face model folder, a .gguf file, or owner/name[@revision][:quantization] on the hub";

/** The option of commands that load models by name. */
export const offlineOption = (): Option =>
  new Option("--offline", "load a model on the hub from the cache only, without a download");

export function addPullCommand(program: Command): void {
  program
    .command("pull")
    .description("download a model from the hub (HF_ENDPOINT) and print its path in the cache")
    .argument("<owner/name>", "the model's repository, with @revision and :quantization, such as :Q4_K_M, if any")
    .option("--revision <name>", "branch, tag or commit (default: main)")
    .option(
      "--include <patterns...>",
      "download only matching files, such as '*Q4_K_M.gguf' (default: the files that loading needs)",
    )
    .addOption(
      new Option("--timeout <seconds>", "retry a request after this many seconds without data")
        .argParser(parseNumber)
        .default(30),
    )
    .action(async (name: string, flags: PullFlags) => {
      const { runPull } = await import("./pull_run.ts");
      process.exitCode = await runPull(name, flags);
    });
}
