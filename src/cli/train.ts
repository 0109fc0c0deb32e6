/** `orchard train`: its options on the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import { architectures, presets, type Settings, tokenizers, trainingDTypes } from "../train/settings.ts";
import type { TrainOptions } from "../train/train.ts";
import { parseNumber } from "./number.ts";

type Flag = readonly [argument: string, meaning: string];

/** Settings that are numbers, in the order in which `--help` shows them. */
const numbers = {
  layers: ["<count>", "blocks of the model"],
  heads: ["<count>", "attention heads of a block"],
  width: ["<count>", "size of a token's vector, a multiple of the heads"],
  context: ["<tokens>", "tokens that the model sees at once"],
  dropout: ["<share>", "of activations and of attention's probabilities"],
  heldOut: ["<share>", "of the data that is only tested with"],
  steps: ["<count>", "steps of the optimiser"],
  batch: ["<count>", "windows of text in a pass"],
  accumulate: ["<count>", "passes whose gradients make one step"],
  learningRate: ["<rate>", "AdamW's, after the warm-up"],
  finalLearningRate: ["<rate>", "where its cosine ends"],
  warmup: ["<steps>", "in which the learning rate rises"],
  beta2: ["<share>", "how slowly AdamW forgets squared gradients"],
  weightDecay: ["<rate>", "of matrices"],
  clip: ["<norm>", "the largest norm of a step's gradients; 0: any"],
  seed: ["<number>", "of everything random"],
  evaluateEvery: ["<steps>", "between evaluations; 0: only at the end"],
  evaluationBatches: ["<count>", "batches of an evaluation"],
  saveEvery: ["<steps>", "between checkpoints; 0: only at the end"],
  keep: ["<count>", "checkpoints that stay"],
  sampleEvery: ["<steps>", "between samples; 0: only at the end"],
  sampleTokens: ["<count>", "length of a sample"],
  temperature: ["<number>", "of samples; 0: always the likeliest token"],
} as const satisfies { readonly [Name in keyof Settings]?: Flag };

const flagOf = (name: string): string => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

export function addTrainCommand(program: Command): void {
  const command = program
    .command("train")
    .description("train a GPT on text: from files that are named, or on the TypeScript declarations in node_modules")
    .argument("[data...]", "files, folders and globs")
    .helpOption("--help", "show this")
    .addOption(choice("--architecture <name>", "of the model", architectures))
    .addOption(choice("--tokenizer <name>", "what a token is", tokenizers))
    .addOption(choice("--dtype <name>", "of weights and activations", trainingDTypes))
    .option("--prompt <text>", "what samples begin with");
  for (const [name, [argument, meaning]] of Object.entries(numbers))
    command.addOption(new Option(`${flagOf(name)} ${argument}`, meaning).argParser(parseNumber));
  command
    .addOption(choice("--preset <name>", "a recipe; by default the one for the backend", presetNames))
    .addOption(choice("--backend <name>", "what computes", backendNames))
    .option("--strict", "fail where the backend can't compute something, instead of falling back")
    .option("--out <folder>", "the run's folder; by default a new one under runs/")
    .option("--resume [folder]", "go on with a run; by default the latest under runs/")
    .addOption(new Option("--dashboard [port]", "serve a page with live curves").argParser(parseNumber))
    .addHelpText("after", defaultsText)
    .action(async (data: readonly string[], options: TrainOptions) => {
      const { runTrain } = await import("../train/train.ts");
      process.exitCode = await runTrain({ ...options, ...(data.length > 0 && { data }) });
    });
}

const presetNames = Object.keys(presets);

const choice = (flags: string, meaning: string, choices: readonly string[]): Option =>
  new Option(flags, meaning).choices(choices);

/** The presets side by side, below the options. */
function defaultsText(): string {
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
