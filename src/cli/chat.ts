/** `orchard chat`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import type { CacheFormat } from "../nn/cache/store.ts";
import type { ChatFlags } from "../serve/commands.ts";
import { parseNumber } from "./number.ts";
import { MODEL, offlineOption } from "./pull.ts";

const several = (text: string, before: readonly string[] = []): string[] => [...before, text];
const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);

/** The model options that `chat` and `serve` share. */
export const modelOptions = (): Option[] => [
  new Option("--dtype <name>", "dtype of the weights (default: the file's)").choices([
    "float32",
    "float16",
    "bfloat16",
  ]),
  new Option("--quantize <format>", "quantize the weights to a format such as q8_0 or q4_K"),
  new Option("--cache <format>", "format of cached keys and values (default: the dtype they are computed in)").choices([
    ...(["float16", "q8_0"] satisfies CacheFormat[]),
  ]),
  new Option("--adapter <folder>", "folder of a LoRA adapter in PEFT's format"),
  new Option("--mmproj <file>", "GGUF file of the image encoder, for a language model in a GGUF file"),
  new Option("--backend <name>", "backend to run on").choices(backendNames),
  offlineOption(),
];

export function addChatCommand(program: Command): void {
  const command = program
    .command("chat")
    .description("chat with a model; if input is piped, each line is a message")
    .argument("<model>", MODEL)
    .option("--system <text>", "system message")
    .option("--image <file>", "image of the first message, for a vision-language model (repeatable)", several)
    .addOption(numeric("--tokens <count>", "maximum number of tokens in an answer").default(1024))
    .addOption(numeric("--temperature <number>", "sampling temperature; 0: greedy decoding (default: the model's)"))
    .addOption(numeric("--top-k <count>", "sample from the k most likely tokens"))
    .addOption(
      numeric("--top-p <probability>", "sample from the most likely tokens whose probabilities add up to this"),
    )
    .addOption(numeric("--min-p <factor>", "keep tokens with at least this fraction of the top token's probability"))
    .addOption(numeric("--repetition-penalty <factor>", "above 1: make tokens that already occurred less likely"))
    .addOption(numeric("--seed <number>", "random seed; the same seed gives the same answers"));
  for (const option of modelOptions()) command.addOption(option);
  command.action(async (model: string, flags: ChatFlags) => {
    const { runChat } = await import("../serve/commands.ts");
    process.exitCode = await runChat(model, flags);
  });
}
