/** `orchard serve`: the command line. */
import { type Command, Option } from "commander";
import type { ServeFlags } from "../serve/commands.ts";
import { modelOptions } from "./chat.ts";
import { parseNumber } from "./number.ts";
import { MODEL } from "./pull.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);
const several = (text: string, before: readonly string[] = []): string[] => [...before, text];

export function addServeCommand(program: Command): void {
  const command = program
    .command("serve")
    .description("serve a model over HTTP with an OpenAI-compatible API")
    .argument("<model>", MODEL)
    .option("--name <name>", "name of the model in the API (default: the folder's name)")
    .option("--host <address>", "address to listen on; any other than localhost requires a key", "127.0.0.1")
    .addOption(numeric("--port <number>", "port to listen on; 0: any free port").default(8080))
    .option("--key <text>", "API key that clients must send (default: ORCHARD_SERVE_KEY, if set)")
    .option("--cors <origin>", "origin of a web page that may send requests, or * (repeatable; default: none)", several)
    .addOption(numeric("--slots <count>", "maximum number of texts generated at once").default(8))
    .addOption(numeric("--queue <count>", "maximum number of texts waiting in the queue").default(64))
    .option("--image-urls", "download images that requests name by http(s) URL (default: only data: URLs)")
    .addOption(
      numeric(
        "--max-body <bytes>",
        "maximum size of a request (default: 4 MiB; 25 MiB with a recording; 32 MiB for a model that reads images)",
      ),
    )
    .addOption(numeric("--max-tokens <count>", "maximum number of tokens a request may generate (default: 16384)"))
    .addOption(numeric("--max-seconds <count>", "time limit of a request (default: 600)"))
    .addOption(numeric("--max-connections <count>", "maximum number of simultaneous requests (default: 256)"));
  for (const option of modelOptions()) command.addOption(option);
  command.action(async (model: string, flags: ServeFlags) => {
    const { runServe } = await import("../serve/commands.ts");
    process.exitCode = await runServe(model, flags);
  });
}
