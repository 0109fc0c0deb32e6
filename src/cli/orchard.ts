#!/usr/bin/env bun
/** The `orchard` command. What a command does is loaded when it is called. */
import { Command, CommanderError } from "commander";
import packageFile from "../../package.json" with { type: "json" };
import { addGenerateCommand } from "./generate.ts";
import { addTrainCommand } from "./train.ts";

const program = new Command("orchard")
  .description(packageFile.description)
  .version(packageFile.version, "--version", "show the version")
  .helpOption("--help", "show what there is, or what a command takes")
  .helpCommand(false)
  .enablePositionalOptions()
  .showHelpAfterError()
  .exitOverride();

program
  .command("doctor")
  .description("show the machine, each backend, and how to fix what is missing")
  .action(async () => {
    const { diagnose, formatDiagnoses } = await import("./doctor.ts");
    const { cacheFolder } = await import("../core/paths.ts");
    const diagnoses = diagnose(cacheFolder());
    console.log(formatDiagnoses(diagnoses));
    process.exitCode = diagnoses.some(({ state }) => state === "missing") ? 1 : 0;
  });

addTrainCommand(program);
addGenerateCommand(program);

program
  .command("tune")
  .description("measure from which size on fused attention is faster here, and route by it")
  .option("--quick", "a coarser grid, in a few seconds")
  .option("--reset", "remove what was measured: the shipped table holds again")
  .action(async ({ quick, reset }: { quick?: true; reset?: true }) => {
    if (quick && reset) program.error("tune takes --quick or --reset, not both.");
    const { runTune } = await import("./tune.ts");
    process.exitCode = runTune(reset ? "--reset" : quick && "--quick");
  });

program
  .command("metal")
  .description("work with kernels")
  .command("check")
  .description("compile .metal files and print the compiler's diagnostics")
  .argument("<file.metal...>")
  .action(async (files: readonly string[]) => {
    const { checkKernel } = await import("./kernels.ts");
    const problems = files.map((file) => {
      const problem = checkKernel(file);
      console.log(problem ?? `${file}: no problems`);
      return problem;
    });
    process.exitCode = problems.some(Boolean) ? 1 : 0;
  });

program
  .command("swift")
  .description("compile and run a Swift program that imports Metal; the arguments are the program's")
  .argument("<program.swift>")
  .argument("[arguments...]")
  .passThroughOptions()
  .action(async (source: string, programArguments: readonly string[]) => {
    const { runSwift } = await import("./swift.ts");
    process.exitCode = await runSwift(source, programArguments);
  });

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error; // it has said what is wrong, with the usage
  process.exitCode = error.exitCode;
}
