/** `orchard serve`: the command line. */
import { type Command, Option } from "commander";
import type { ServeFlags } from "../serve/commands.ts";
import { modelOptions } from "./chat.ts";
import { parseNumber } from "./number.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);
const several = (text: string, before: readonly string[] = []): string[] => [...before, text];

export function addServeCommand(program: Command): void {
  const command = program
    .command("serve")
    .description("serve a model over HTTP, in the form of OpenAI's API")
    .argument("<model>", "a folder of Hugging Face, or a .gguf file")
    .helpOption("--help", "show this help")
    .option("--name <name>", "what clients call the model (default: the folder's name)")
    .option("--host <address>", "the address to listen on; another than this machine's own needs a key", "127.0.0.1")
    .addOption(numeric("--port <number>", "0: any free port").default(8080))
    .option("--key <text>", "what clients have to send (default: ORCHARD_SERVE_KEY, if it is set)")
    .option("--cors <origin>", "a web page that may ask, or * (may be repeated; default: none)", several)
    .addOption(numeric("--slots <count>", "texts that are generated at once").default(8))
    .addOption(numeric("--queue <count>", "texts that may wait").default(64))
    .addOption(numeric("--max-body <bytes>", "of a request (default: 4 MiB)"))
    .addOption(numeric("--max-tokens <count>", "that one request may generate (default: 16384)"))
    .addOption(numeric("--max-seconds <count>", "that one request may take (default: 600)"))
    .addOption(numeric("--max-connections <count>", "requests at a time (default: 256)"));
  for (const option of modelOptions()) command.addOption(option);
  command.action(async (model: string, flags: ServeFlags) => {
    const { runServe } = await import("../serve/commands.ts");
    process.exitCode = await runServe(model, flags);
  });
}
