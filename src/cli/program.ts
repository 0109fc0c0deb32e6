/** The command line of `orchard`. Each command's implementation is loaded when it is called. */
import { Command, CommanderError, Option } from "commander";
import packageFile from "../../package.json" with { type: "json" };
import { orchardCommand } from "../core/commands.ts";
import { addChatCommand } from "./chat.ts";
import { formats } from "./diagnostics.ts";
import { addEmbedCommand } from "./embed.ts";
import { addGenerateCommand } from "./generate.ts";
import { addMergeCommand } from "./merge.ts";
import type { CheckOptions } from "./metal_check.ts";
import type { RunOptions } from "./metal_run.ts";
import { parseNumber } from "./number.ts";
import { addOnnxCommand } from "./onnx.ts";
import { addPullCommand } from "./pull.ts";
import { addQuantizeCommand } from "./quantize.ts";
import { addServeCommand } from "./serve.ts";
import { addTrainCommand } from "./train.ts";
import { addTranscribeCommand } from "./transcribe.ts";
import { addTranslateCommand } from "./translate.ts";

function makeProgram(): Command {
  const program = new Command("orchard")
    .description(packageFile.description)
    .version(packageFile.version, "--version", "show the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand("help [command]", "show help for a command")
    .enablePositionalOptions()
    .exitOverride();

  addDoctorCommand(program);
  addTrainCommand(program);
  addGenerateCommand(program);
  addQuantizeCommand(program);
  addMergeCommand(program);
  addChatCommand(program);
  addServeCommand(program);
  addEmbedCommand(program);
  addTranscribeCommand(program);
  addTranslateCommand(program);
  addOnnxCommand(program);
  addPullCommand(program);
  addTuneCommand(program);
  addMetalCommand(program);
  addSwiftCommand(program);
  addToolchainCommand(program);
  adviseHelp(program, []);
  return program;
}

function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .description("check the machine and each backend, and show how to fix problems")
    .action(async () => {
      const { diagnose, formatDiagnoses } = await import("./doctor.ts");
      const { cacheFolder } = await import("../core/paths.ts");
      const diagnoses = diagnose(cacheFolder());
      console.log(formatDiagnoses(diagnoses));
      process.exitCode = diagnoses.some(({ state }) => state === "missing") ? 1 : 0;
    });
}

function addTuneCommand(program: Command): void {
  program
    .command("tune")
    .description(
      "measure the sizes from which fused attention, and linear algebra on metal, are faster here, and apply them",
    )
    .option("--quick", "measure a coarser grid, in a few seconds")
    .option("--reset", "delete the measurements and use the shipped tables again")
    .action(async ({ quick, reset }: { quick?: true; reset?: true }, command: Command) => {
      if (quick && reset) command.error("error: tune accepts --quick or --reset, not both.");
      const { runTune } = await import("./tune.ts");
      process.exitCode = runTune(reset ? "--reset" : quick && "--quick");
    });
}

const several = (text: string, before: readonly string[] = []): string[] => [...before, text];

function addMetalCommand(program: Command): void {
  const metal = program.command("metal").description("check Metal kernels").enablePositionalOptions();
  metal
    .command("run")
    .description("run a command under the checker and report its kernels' errors")
    .usage("[options] command [words...]")
    .argument("<command...>", "a program and its arguments, such as: bun test kernels")
    .addOption(new Option("--format <format>", "format of the report").choices(formats).default("text"))
    .option("--output <file>", "write the report to a file instead of standard output")
    .passThroughOptions()
    .action(async (command: readonly string[], options: RunOptions) => {
      const { runChecked } = await import("./metal_run.ts");
      process.exitCode = await runChecked(command, options);
    });
  metal
    .command("check")
    .description("compile every kernel in .metal files or folders of them, and print the compiler's diagnostics")
    .argument("<file.metal...>", ".metal files, or folders of them")
    .option("-I, --include <folder>", "search this folder for included files (repeatable)", several)
    .option("-D, --define <name=value>", "define a macro (repeatable)", several)
    .option("--std <version>", "language version, such as metal3.1 (default: metal3.2)")
    .option("--library", "compare the files' definitions, as Xcode does when it links a target's files")
    .addOption(new Option("--link <file>", "another file of the library").argParser(several).hideHelp())
    .addOption(new Option("--format <format>", "format of the report").choices(formats).default("text"))
    .option("--jobs <n>", "number of files to compile in parallel", parseNumber)
    .action(async (files: readonly string[], options: CheckOptions) => {
      const { checkKernels } = await import("./metal_check.ts");
      process.exitCode = await checkKernels(files, options);
    });
}

function addSwiftCommand(program: Command): void {
  program
    .command("swift")
    .description("run Swift programs that import Metal, or build, test and run Swift packages")
    .usage("program.swift [other.swift...] [arguments...] | build | test | run [-- arguments...] | package ...")
    .argument(
      "<program.swift>",
      "source files, then the program's arguments; or build, test, run or package in a package's folder",
    )
    .argument("[words...]", "further source files and arguments")
    .passThroughOptions()
    .action(async (first: string, words: readonly string[]) => {
      const { packageCommands, runPackage } = await import("./swift_package.ts");
      if (packageCommands.includes(first)) {
        process.exitCode = await runPackage(first, words);
        return;
      }
      const { runProgram } = await import("./swift_program.ts");
      const others = words.findIndex((word) => !word.endsWith(".swift"));
      const sources = others < 0 ? words : words.slice(0, others);
      const programArguments = words.slice(sources.length);
      if (programArguments[0] === "--") programArguments.shift();
      process.exitCode = await runProgram([first, ...sources], programArguments);
    });
}

function addToolchainCommand(program: Command): void {
  program
    .command("toolchain")
    .description("manage the toolchain that compiles kernels and Swift programs on Linux")
    .command("install")
    .description("install Swift, clang and lld from Debian's packages into the cache folder, without root")
    .option("--gpu", "install the clang that compiles kernels for NVIDIA GPUs instead")
    .action(async ({ gpu }: { gpu?: boolean }) => {
      const { runInstall, runInstallGpu } = await import("./toolchain/command.ts");
      process.exitCode = await (gpu ? runInstallGpu() : runInstall());
    });
}

/** After an error, names the command that shows the help. The help itself would push the error out of sight. */
function adviseHelp(command: Command, path: readonly string[]): void {
  command.showHelpAfterError(`\`${orchardCommand([...path, "--help"].join(" "))}\` shows the usage.`);
  for (const each of command.commands) adviseHelp(each, [...path, each.name()]);
}

/** Runs a command. Prints help and usage errors, and sets the exit code. */
export const runOrchard = (words: readonly string[]): Promise<boolean> => parse(makeProgram(), words);

/** Parses a command line without running it. Returns false for usage errors and requests for help. */
export function checkOrchard(words: readonly string[]): Promise<boolean> {
  const program = makeProgram();
  for (const command of program.commands) command.action(() => undefined);
  return parse(program, words);
}

async function parse(program: Command, words: readonly string[]): Promise<boolean> {
  try {
    await program.parseAsync(words, { from: "user" });
    return true;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error; // commander has printed the message
    process.exitCode = error.exitCode;
    return false;
  }
}
