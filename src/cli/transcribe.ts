/** `orchard transcribe`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import type { TranscribeFlags } from "../serve/transcribe_command.ts";
import { MODEL, offlineOption } from "./pull.ts";

export function addTranscribeCommand(program: Command): void {
  program
    .command("transcribe")
    .description("transcribe recordings to text, subtitles or JSON")
    .argument("<file...>", "WAV files; or FLAC and MP3 files, with the packages that decode them")
    .requiredOption("--model <model>", `a Whisper, wav2vec2 or HuBERT model: ${MODEL}`)
    .addOption(
      new Option("--format <format>", "format of the result").choices(["txt", "srt", "vtt", "json"]).default("txt"),
    )
    .option("--out <folder>", "write a file for each recording to this folder (default: to standard output)")
    .option("--language <code>", "the spoken language, such as de (default: detected)")
    .addOption(
      new Option("--task <task>", "whether to transcribe, or to translate to English")
        .choices(["transcribe", "translate"])
        .default("transcribe"),
    )
    .option("--word-timestamps", "find the times of words, for --format json")
    .option("--initial-prompt <text>", "text before the recording, such as names that occur in it")
    .option("--vad <path>", "silero's voice activity detector (silero_vad.onnx): do not transcribe silence")
    .addOption(offlineOption())
    .addOption(new Option("--backend <name>", "backend to run on").choices(backendNames))
    .action(async (files: readonly string[], flags: TranscribeFlags) => {
      const { runTranscribe } = await import("../serve/transcribe_command.ts");
      process.exitCode = await runTranscribe(files, flags);
    });
}
