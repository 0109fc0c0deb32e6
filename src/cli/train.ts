/** `orchard train`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import { ggmlFormats } from "../quant/formats.ts";
import { architectures, presets, type Settings, tokenizers, trainingDTypes } from "../train/settings.ts";
import type { RunFlags } from "../train/train.ts";
import type { TuningSettings } from "../train/tuning/settings.ts";
import { parseNumber } from "./number.ts";

type Flag = readonly [value: string, meaning: string];

/** Settings that are numbers, in the order in which `--help` shows them. */
const numbers = {
  layers: ["<count>", "number of transformer blocks"],
  heads: ["<count>", "attention heads per block"],
  width: ["<count>", "size of the hidden states, a multiple of the heads"],
  context: ["<tokens>", "context length"],
  dropout: ["<probability>", "dropout of activations and attention probabilities"],
  vocabulary: ["<tokens>", "number of tokens of the tokenizer bpe, which is trained on the text"],
  heldOut: ["<fraction>", "fraction of the data for evaluation"],
  steps: ["<count>", "optimizer steps"],
  batch: ["<count>", "windows of text per pass"],
  accumulate: ["<count>", "gradient accumulation: passes per step"],
  learningRate: ["<rate>", "learning rate of AdamW after the warmup"],
  finalLearningRate: ["<rate>", "learning rate at the end of the cosine schedule"],
  warmup: ["<steps>", "warmup steps, in which the learning rate rises"],
  beta2: ["<number>", "decay rate of AdamW's second moment"],
  weightDecay: ["<rate>", "weight decay of matrices"],
  clip: ["<norm>", "largest global norm of a step's gradients; 0: no clipping"],
  seed: ["<number>", "seed of all random numbers"],
  evaluateEvery: ["<steps>", "steps between evaluations; 0: only at the end"],
  evaluationBatches: ["<count>", "batches per evaluation"],
  patience: ["<count>", "evaluations without a lower held-out loss after which the run ends; 0: never"],
  saveEvery: ["<steps>", "steps between checkpoints; 0: only at the end"],
  keep: ["<count>", "number of checkpoints to keep"],
  sampleEvery: ["<steps>", "steps between samples; 0: only at the end"],
  sampleTokens: ["<count>", "tokens per sample"],
  temperature: ["<number>", "temperature of samples; 0: always the most likely token"],
} as const satisfies { readonly [Name in keyof Settings]?: Flag };

/** Of a model that exists. */
const tuningNumbers = {
  lora: ["<rank>", "rank of the matrices that are trained beside the model's layers"],
  loraAlpha: ["<number>", "what they add is multiplied with this / rank (default: the rank)"],
  loraDropout: ["<probability>", "dropout of what they get"],
} as const satisfies { readonly [Name in keyof TuningSettings]?: Flag };

const flagOf = (name: string): string => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

export function addTrainCommand(program: Command): void {
  const command = program
    .command("train")
    .description(
      "train a GPT on text files, or by default on the TypeScript declarations in node_modules; " +
        "with --model and --lora, adapt a model to chats",
    )
    .argument("[data...]", "files, folders and globs")
    .helpOption("--help", "show this help")
    .addOption(choice("--architecture <name>", "architecture of the model", architectures))
    .addOption(choice("--tokenizer <name>", "tokenizer of the text", tokenizers))
    .addOption(choice("--dtype <name>", "dtype of weights and activations", trainingDTypes))
    .option("--prompt <text>", "the start of samples");
  for (const [name, [value, meaning]] of Object.entries(numbers))
    command.addOption(new Option(`${flagOf(name)} ${value}`, meaning).argParser(parseNumber));
  command.option("--model <path>", "adapt a model: a folder of Hugging Face, or a .gguf file; data are files of chats");
  for (const [name, [value, meaning]] of Object.entries(tuningNumbers))
    command.addOption(new Option(`${flagOf(name)} ${value}`, meaning).argParser(parseNumber));
  command
    .option("--lora-targets <layers...>", "the layers, such as query value output gate up down (default: query value)")
    .addOption(choice("--quantize <format>", "quantise the model's weights", ggmlFormats))
    .option("--packing", "several chats in a row of the context, of which none sees another")
    .option("--checkpoint-activations", "compute blocks again in the backward pass, which keeps nothing of them")
    .option("--data <files...>", "the same as the argument")
    .addOption(choice("--preset <name>", "default settings (default: those for the backend)", presetNames))
    .addOption(choice("--backend <name>", "the backend that computes", backendNames))
    .option("--strict", "fail instead of falling back to another backend")
    .option("--verbose", "list at the end which backend ran each operation, and why")
    .option("--out <folder>", "the run's folder (default: a new one in runs/)")
    .option("--resume [folder]", "resume a run (default: the latest in runs/)")
    .option("--tensorboard", "write an event file of TensorBoard into the run's folder")
    .addOption(new Option("--dashboard [port]", "serve a page with live curves").argParser(parseNumber))
    .addHelpText("after", presetTable)
    .action(async (paths: readonly string[], flags: RunFlags) => {
      const { runTrain } = await import("../train/train.ts");
      const data = [...paths, ...(flags.data ?? [])];
      process.exitCode = await runTrain({ ...flags, ...(data.length > 0 && { data }) });
    });
}

const presetNames = Object.keys(presets);

const choice = (flags: string, meaning: string, choices: readonly string[]): Option =>
  new Option(flags, meaning).choices(choices);

/** A table of the presets, below the options. */
function presetTable(): string {
  const names = Object.keys(presets.cpu) as (keyof Settings)[];
  const rows = names
    .filter((name) => name !== "data")
    .map((name) => [flagOf(name), ...Object.values(presets).map((preset: Settings) => JSON.stringify(preset[name]))]);
  const table = [["", ...presetNames], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd(),
  );
  return `\nPresets:\n  ${lines.join("\n  ")}`;
}
