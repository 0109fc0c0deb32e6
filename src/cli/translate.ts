/** `orchard translate`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import { ggmlFormats } from "../quant/formats.ts";
import type { TranslateFlags } from "../serve/translate_command.ts";
import { parseNumber } from "./number.ts";
import { offlineOption } from "./pull.ts";

const numeric = (flags: string, meaning: string): Option => new Option(flags, meaning).argParser(parseNumber);

export function addTranslateCommand(program: Command): void {
  program
    .command("translate")
    .description("translate a text, or each line of standard input")
    .argument("<model>", "a translation model: a Hugging Face model folder, or owner/name[@revision] on the hub")
    .argument("[text]", "the text (default: the lines of standard input)")
    .option("--from <language>", "language of the text, such as en or eng_Latn")
    .option("--to <language>", "language of the translation, such as de or deu_Latn")
    .addOption(numeric("--beams <count>", "number of beams (default: as the model's files say)"))
    .addOption(numeric("--tokens <count>", "maximum number of tokens of a translation (default: as the files say)"))
    .addOption(new Option("--quantize <format>", "quantize the model's weights").choices(ggmlFormats))
    .addOption(offlineOption())
    .addOption(new Option("--backend <name>", "backend to run on").choices(backendNames))
    .action(async (model: string, text: string | undefined, flags: TranslateFlags) => {
      const { runTranslate } = await import("../serve/translate_command.ts");
      process.exitCode = await runTranslate(model, text, flags);
    });
}
