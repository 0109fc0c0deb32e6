/** `orchard pull`: the command line. */
import type { Command } from "commander";
import { Option } from "commander";
import { parseNumber } from "./number.ts";

/** The options of `orchard pull`. */
export interface PullFlags {
  readonly revision: string;
  readonly include?: readonly string[];
  readonly timeout: number;
}

export function addPullCommand(program: Command): void {
  program
    .command("pull")
    .description("download a model from the hub at HF_ENDPOINT and print its folder")
    .argument("<owner/name>", "the model's repository on the hub")
    .option("--revision <name>", "branch, tag or commit", "main")
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
