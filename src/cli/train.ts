/** `orchard train`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import { keysOf } from "../core/records.ts";
import { ggmlFormats } from "../quant/formats.ts";
import { encoderTasks } from "../train/encoders/records.ts";
import { architectures, presets, type Settings, tokenizers, trainingDTypes } from "../train/settings.ts";
import type { RunFlags } from "../train/train.ts";
import type { TuningSettings } from "../train/tuning/settings.ts";
import { parseNumber } from "./number.ts";

type Flag = readonly [value: string, meaning: string];

/** Numeric settings, in the order of `--help`. */
const numbers = {
  layers: ["<count>", "number of transformer blocks"],
  heads: ["<count>", "attention heads per block"],
  width: ["<count>", "size of the hidden states, a multiple of the heads"],
  context: ["<tokens>", "context length"],
  dropout: ["<probability>", "dropout of activations and attention probabilities"],
  vocabulary: ["<tokens>", "vocabulary size of the bpe tokenizer, which is trained on the text"],
  heldOut: ["<fraction>", "fraction of the data held out for evaluation"],
  steps: ["<count>", "optimizer steps"],
  batch: ["<count>", "windows of text per pass"],
  accumulate: ["<count>", "gradient accumulation: passes per step"],
  learningRate: ["<rate>", "learning rate of AdamW after the warmup"],
  finalLearningRate: ["<rate>", "learning rate at the end of the cosine schedule"],
  warmup: ["<steps>", "warmup steps, during which the learning rate rises"],
  beta2: ["<number>", "decay rate of AdamW's second moment"],
  weightDecay: ["<rate>", "AdamW's weight decay, applied to matrices only"],
  clip: ["<norm>", "clip gradients to this global norm; 0: no clipping"],
  seed: ["<number>", "random seed"],
  evaluateEvery: ["<steps>", "steps between evaluations; 0: only at the end"],
  evaluationBatches: ["<count>", "batches per evaluation"],
  patience: ["<count>", "stop after this many evaluations without a lower held-out loss; 0: never"],
  saveEvery: ["<steps>", "steps between checkpoints; 0: only at the end"],
  keep: ["<count>", "number of checkpoints to keep"],
  sampleEvery: ["<steps>", "steps between samples; 0: only at the end"],
  sampleTokens: ["<count>", "tokens per sample"],
  temperature: ["<number>", "temperature of samples; 0: greedy decoding"],
} as const satisfies { readonly [Name in keyof Settings]?: Flag };

/** Numeric settings for training a pretrained model. */
const tuningNumbers = {
  scale: ["<number>", "--task embed: cosines are multiplied by this, 1 / temperature (default: 20)"],
  lora: ["<rank>", "rank of the LoRA matrices"],
  loraAlpha: ["<number>", "LoRA scale: updates are multiplied by this / rank (default: the rank)"],
  loraDropout: ["<probability>", "dropout applied to the input of the LoRA matrices"],
} as const satisfies { readonly [Name in keyof TuningSettings | "scale"]?: Flag };

const flagOf = (name: string): string => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

export function addTrainCommand(program: Command): void {
  const command = program
    .command("train")
    .description(
      "train a GPT on text files, or by default on the TypeScript declarations in node_modules; " +
        "with --model and --lora, fine-tune a pretrained model on chats; " +
        "with --model and --task, train an encoder on pairs of texts or on labels",
    )
    .argument("[data...]", "files, folders and globs")
    .addOption(choice("--architecture <name>", "architecture of the model", architectures))
    .addOption(choice("--tokenizer <name>", "tokenizer of the data", tokenizers))
    .addOption(choice("--dtype <name>", "dtype of weights and activations", trainingDTypes))
    .option("--prompt <text>", "text that samples continue");
  for (const [name, [value, meaning]] of Object.entries(numbers))
    command.addOption(new Option(`${flagOf(name)} ${value}`, meaning).argParser(parseNumber));
  command.option(
    "--model <path>",
    "pretrained model to fine-tune: a Hugging Face folder, owner/name on the hub, or a .gguf file for chats",
  );
  command.addOption(
    choice("--task <name>", "train an encoder: embed learns from pairs of texts, classify from labels", encoderTasks),
  );
  for (const [name, [value, meaning]] of Object.entries(tuningNumbers))
    command.addOption(new Option(`${flagOf(name)} ${value}`, meaning).argParser(parseNumber));
  command
    .option(
      "--lora-targets <layers...>",
      "layers to adapt, such as query value output gate up down (default: query value)",
    )
    .addOption(choice("--quantize <format>", "quantize the pretrained model's weights", ggmlFormats))
    .option("--packing", "pack several chats into one context window; attention stays within each chat")
    .option("--checkpoint-activations", "recompute blocks in the backward pass instead of storing their activations")
    .option("--data <files...>", "the same as the data argument")
    .addOption(choice("--preset <name>", "preset of default settings (default: chosen by the backend)", presetNames))
    .addOption(choice("--backend <name>", "backend to run on", backendNames))
    .option("--strict", "fail instead of falling back to another backend")
    .option("--compile", "record training steps once and replay them (default: on cpu)")
    .option("--no-compile", "run each operation of a training step immediately")
    .option("--verbose", "list at the end which backend ran each operation, and why")
    .option("--out <folder>", "the run's folder (default: a new one in runs/)")
    .option("--resume [folder]", "resume a run (default: the latest in runs/)")
    .option("--tensorboard", "write a TensorBoard event file to the run's folder")
    .addOption(
      new Option("--dashboard [port]", "serve a web page with live curves, on this port if given").argParser(
        parseNumber,
      ),
    )
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

/** The table of presets below the options. */
function presetTable(): string {
  const names = keysOf(presets.cpu);
  const rows = names
    .filter((name) => name !== "data")
    .map((name) => [flagOf(name), ...Object.values(presets).map((preset: Settings) => JSON.stringify(preset[name]))]);
  const table = [["", ...presetNames], ...rows];
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join("  ")
      .trimEnd(),
  );
  return `\nPresets:\n  ${lines.join("\n  ")}`;
}
