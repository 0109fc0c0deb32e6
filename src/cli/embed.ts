/** `orchard embed`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import type { EmbedFlags } from "../serve/embed_command.ts";
import { parseNumber } from "./number.ts";
import { MODEL, offlineOption } from "./pull.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);

export function addEmbedCommand(program: Command): void {
  program
    .command("embed")
    .description("compute an embedding vector of each line of a text file")
    .argument("<file>", "a text file; each line is a text")
    .requiredOption("--model <model>", `an encoder, such as one of sentence-transformers: ${MODEL}`)
    .requiredOption("--out <file.npy>", "the NumPy file to write: float32 [lines, width]")
    .addOption(numeric("--batch <count>", "maximum number of texts in a batch").default(32))
    .option("--prompt-name <name>", "name of the model's prompt that precedes each text, such as query")
    .addOption(numeric("--truncate-dim <count>", "number of elements of each vector to keep (default: all)"))
    .addOption(offlineOption())
    .addOption(new Option("--backend <name>", "backend to run on").choices(backendNames))
    .action(async (file: string, flags: EmbedFlags) => {
      const { runEmbed } = await import("../serve/embed_command.ts");
      process.exitCode = await runEmbed(file, flags);
    });
}
