#!/usr/bin/env bun
import { defineCommand, runMain } from "citty";
import packageFile from "../package.json" with { type: "json" };
import { diagnose, formatDiagnoses } from "./debug/doctor.ts";
import { checkKernel } from "./debug/kernels.ts";
import { cacheFolder } from "./debug/paths.ts";
import { compileProgram } from "./debug/swift.ts";

const doctor = defineCommand({
  meta: { name: "doctor", description: "Show the machine, each backend, and what would mend what is missing" },
  run() {
    const diagnoses = diagnose(cacheFolder());
    console.log(formatDiagnoses(diagnoses));
    if (diagnoses.some(({ state }) => state === "missing")) process.exitCode = 1;
  },
});

const swift = defineCommand({
  meta: {
    name: "swift",
    description: "Compile and run a Swift program that imports Metal; words after it are the program's",
  },
  args: { program: { type: "positional", description: "The program's .swift file" } },
  async run({ rawArgs: [program = "", ...words] }) {
    const result = await compileProgram([program]);
    if ("problem" in result) {
      console.error(result.problem);
      process.exitCode = 1;
      return;
    }
    const child = Bun.spawn([result.program, ...words], { stdio: ["inherit", "inherit", "inherit"] });
    process.exitCode = await child.exited;
    await Bun.file(result.program).delete();
  },
});

const check = defineCommand({
  meta: { name: "check", description: "Compile .metal files and print the compiler's diagnostics" },
  args: { file: { type: "positional", description: "One or more .metal files" } },
  run({ rawArgs: files }) {
    for (const file of files) {
      const problem = checkKernel(file);
      console.log(problem ?? `${file}: no problems`);
      if (problem) process.exitCode = 1;
    }
  },
});

const metal = defineCommand({
  meta: { name: "metal", description: "Work with Metal kernels" },
  subCommands: { check },
});

await runMain(
  defineCommand({
    meta: { name: "orchard", version: packageFile.version, description: packageFile.description },
    subCommands: { doctor, metal, swift },
  }),
);
