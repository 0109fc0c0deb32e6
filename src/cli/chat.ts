/** `orchard chat`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import type { CacheFormat } from "../nn/cache/store.ts";
import type { ChatFlags } from "../serve/commands.ts";
import { parseNumber } from "./number.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);

/** The options by which `chat` and `serve` load a model. */
export const modelOptions = (): Option[] => [
  new Option("--dtype <name>", "the dtype of weights (default: the file's)").choices([
    ...["float32", "float16", "bfloat16"],
  ]),
  new Option("--quantize <format>", "quantise the weights, such as q8_0 or q4_K"),
  new Option("--cache <format>", "how keys and values are kept (default: as they are computed)").choices([
    ...(["float16", "q8_0"] satisfies CacheFormat[]),
  ]),
  new Option("--adapter <folder>", "what the model learned by LoRA, in PEFT's format"),
  new Option("--backend <name>", "the backend that computes").choices(backendNames),
];

export function addChatCommand(program: Command): void {
  const command = program
    .command("chat")
    .description("talk with a model; from a pipe each line is a message")
    .argument("<model>", "a folder of Hugging Face, or a .gguf file")
    .helpOption("--help", "show this help")
    .option("--system <text>", "what the model is told first")
    .addOption(numeric("--tokens <count>", "the maximum number of tokens of an answer").default(1024))
    .addOption(numeric("--temperature <number>", "0: always the most likely token (default: the model's)"))
    .addOption(numeric("--top-k <count>", "sample from this many most likely tokens"))
    .addOption(numeric("--top-p <probability>", "sample from the most likely tokens with this total probability"))
    .addOption(numeric("--min-p <factor>", "sample from tokens at least this times as likely as the likeliest"))
    .addOption(numeric("--repetition-penalty <factor>", "above 1: previous tokens become less likely"))
    .addOption(numeric("--seed <number>", "the same seed gives the same answers"));
  for (const option of modelOptions()) command.addOption(option);
  command.action(async (model: string, flags: ChatFlags) => {
    const { runChat } = await import("../serve/commands.ts");
    process.exitCode = await runChat(model, flags);
  });
}
