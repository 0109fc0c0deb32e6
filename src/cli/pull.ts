/** `orchard pull`: the command line. */
import type { Command } from "commander";
import { Option } from "commander";
import { parseNumber } from "./number.ts";

/** The words behind `pull`. */
export interface PullFlags {
  readonly revision: string;
  readonly include?: readonly string[];
  readonly timeout: number;
}

export function addPullCommand(program: Command): void {
  program
    .command("pull")
    .description("download a model from the hub that HF_ENDPOINT names, and print the folder it is in")
    .argument("<owner/name>")
    .helpOption("--help", "show this help")
    .option("--revision <name>", "a branch, a tag or a commit", "main")
    .option("--include <patterns...>", "these files alone, such as '*Q4_K_M.gguf' (default: what loading needs)")
    .addOption(
      new Option("--timeout <seconds>", "without a byte, after which a request is tried again")
        .argParser(parseNumber)
        .default(30),
    )
    .action(async (name: string, flags: PullFlags) => {
      const { runPull } = await import("./pull_run.ts");
      process.exitCode = await runPull(name, flags);
    });
}
