#!/usr/bin/env bun
import packageFile from "../package.json" with { type: "json" };

interface Command {
  /** What follows its name. */
  readonly words: string;
  readonly description: string;
  /** Returns the exit code. */
  run(words: readonly string[]): Promise<number>;
}

const commands: Readonly<Record<string, Command>> = {
  doctor: {
    words: "",
    description: "Show the machine, each backend, and what would mend what is missing",
    async run() {
      const { diagnose, formatDiagnoses } = await import("./debug/doctor.ts");
      const { cacheFolder } = await import("./debug/paths.ts");
      const diagnoses = diagnose(cacheFolder());
      console.log(formatDiagnoses(diagnoses));
      return diagnoses.some(({ state }) => state === "missing") ? 1 : 0;
    },
  },
  "metal check": {
    words: "<file.metal> …",
    description: "Compile .metal files and print the compiler's diagnostics",
    async run(files) {
      const { checkKernel } = await import("./debug/kernels.ts");
      const problems = files.map((file) => {
        const problem = checkKernel(file);
        console.log(problem ?? `${file}: no problems`);
        return problem;
      });
      return problems.some(Boolean) ? 1 : 0;
    },
  },
  swift: {
    words: "<program.swift> [words]",
    description: "Compile and run a Swift program that imports Metal; the words are the program's",
    async run([source = "", ...words]) {
      const { compileProgram } = await import("./debug/swift.ts");
      const result = await compileProgram([source]);
      if ("problem" in result) {
        console.error(result.problem);
        return 1;
      }
      const child = Bun.spawn([result.program, ...words], { stdio: ["inherit", "inherit", "inherit"] });
      const status = await child.exited;
      await Bun.file(result.program).delete();
      return status;
    },
  },
};

function usage(): string {
  const calls = Object.entries(commands).map(([name, { words, description }]) => ({
    call: `orchard ${name} ${words}`.trimEnd(),
    description,
  }));
  const widest = Math.max(...calls.map(({ call }) => call.length));
  const rows = calls.map(({ call, description }) => `  ${call.padEnd(widest)}  ${description}`);
  return `orchard ${packageFile.version}: ${packageFile.description}\n\n${rows.join("\n")}`;
}

/** Runs the command that the words begin with. What can't be run gets the usage, on stderr. */
async function main(words: readonly string[]): Promise<number> {
  const given = `${words.join(" ")} `;
  const [name, command] = Object.entries(commands).find(([known]) => given.startsWith(`${known} `)) ?? [];
  const rest = words.slice(name?.split(" ").length ?? 0);
  if (words[0] === "--version") return say(packageFile.version);
  if (words.length === 0 || rest[0] === "--help" || (!command && rest.includes("--help"))) return say(usage());
  if (command && (rest.length > 0 || !command.words)) return command.run(rest);
  console.error(
    `${command ? `${given}wants ${command.words}` : `There is no command "${given.trim()}"`}.\n\n${usage()}`,
  );
  return 1;
}

function say(text: string): number {
  console.log(text);
  return 0;
}

process.exitCode = await main(process.argv.slice(2));
