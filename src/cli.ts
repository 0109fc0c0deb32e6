#!/usr/bin/env bun
import packageFile from "../package.json" with { type: "json" };

interface Command {
  /** What follows its name. */
  readonly words: string;
  readonly description: string;
  /** The words of which it takes one or none, and what `--help` says of each. */
  readonly options?: Readonly<Record<string, string>>;
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
  tune: {
    words: "[--quick | --reset]",
    description: "Measure from which size on fused attention is faster here, and route by it",
    options: {
      "--quick": "a coarser grid, in a few seconds",
      "--reset": "remove what was measured: the shipped table holds again",
    },
    async run([word]) {
      const { runTune } = await import("./debug/tune.ts");
      return runTune(word);
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

/** What `--help` says of a command that has options. */
function helpOf(name: string, { words, description, options = {} }: Command): string {
  const widest = Math.max(...Object.keys(options).map(({ length }) => length));
  const rows = Object.entries(options).map(([word, meaning]) => `  ${word.padEnd(widest)}  ${meaning}`);
  return `orchard ${name} ${words}: ${description}\n\n${rows.join("\n")}`;
}

function usage(): string {
  const calls = Object.entries(commands).map(([name, { words, description }]) => ({
    call: `orchard ${name} ${words}`.trimEnd(),
    description,
  }));
  const widest = Math.max(...calls.map(({ call }) => call.length));
  const rows = calls.map(({ call, description }) => `  ${call.padEnd(widest)}  ${description}`);
  return `orchard ${packageFile.version}: ${packageFile.description}\n\n${rows.join("\n")}`;
}

const takes = ({ words, options }: Command, given: readonly string[]): boolean =>
  options ? given.length <= 1 && given.every((word) => word in options) : given.length > 0 || !words;

/** Runs the command that the words begin with. What can't be run gets the usage, on stderr. */
async function main(words: readonly string[]): Promise<number> {
  const given = `${words.join(" ")} `;
  const [name, command] = Object.entries(commands).find(([known]) => given.startsWith(`${known} `)) ?? [];
  const rest = words.slice(name?.split(" ").length ?? 0);
  if (words[0] === "--version") return say(packageFile.version);
  if (name && command?.options && rest.includes("--help")) return say(helpOf(name, command));
  if (words.length === 0 || rest[0] === "--help" || (!command && rest.includes("--help"))) return say(usage());
  if (command && takes(command, rest)) return command.run(rest);
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
