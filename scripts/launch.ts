/**
 * The commands of package.json: `bun run <name>` is `bun scripts/launch.ts <name>`. On a fresh clone nothing is
 * installed yet, so this file and its imports use only Bun, and a command's module is imported after the dependencies
 * are installed.
 */
import { installDependencies } from "./dependencies.ts";
import { Failure, main } from "./failure.ts";

type Command = (words: readonly string[]) => Promise<unknown>;

interface Entry {
  /** Imports the command's module, and returns its function, which gets the arguments after the command's name. */
  readonly load: () => Promise<Command>;
  /** Describes the command; undefined if it prints its help itself. */
  readonly meaning?: string;
}

const commands: Readonly<Record<string, Entry>> = {
  setup: {
    load: async () => (await import("./toolchain/command.ts")).setUpCommand,
    meaning:
      "[--hook]: installs the dependencies, and Swift and OpenBLAS where they are missing; --hook adds a git hook " +
      "that runs check:quick before each commit",
  },
  build: { load: async () => (await import("./built.ts")).buildAll, meaning: "sets up, and builds the dylibs" },
  clean: {
    load: async () => (await import("./clean.ts")).clean,
    meaning: "[--caches]: removes what builds left in this clone; --caches also what all clones share",
  },
  check: {
    load: async () => (await import("./suite/suite.ts")).checkEverything,
    meaning:
      "[words]: checks types, layers, lint, formats, line lengths, precedents, Swift warnings, and every kernel, or " +
      "only checks that have one of the words in their names",
  },
  "check:quick": {
    load: async () => (await import("./suite/suite.ts")).checkQuickly,
    meaning: "checks types, layers, lint, line lengths, and the format of changed files, in seconds",
  },
  "check:sanitize": {
    load: async () => (await import("./sanitize/sanitize.ts")).checkSanitized,
    meaning: "[folder]: replays the tests' calls of the cpu dylib under sanitizers, or those recorded in the folder",
  },
  test: {
    load: async () => (await import("./suite/suite.ts")).testEverything,
    meaning:
      "[--again] [--all] [--changed] [--shard 1/3] [--seed 1] [files [-t pattern]]: builds, and runs all tests, " +
      "those that changes reach, a share, or those in the files; --all runs every sweep in full, --again also what " +
      "passed before, --seed runs files in the order of an earlier run",
  },
  "test:arm64": {
    load: async () => (await import("./arm64/arm64.ts")).testArm64,
    meaning:
      "[--processor name] [files]: tests the cpu backend's code for arm64, on emulated processors where this is none",
  },
  "test:musl": {
    load: async () => (await import("./musl/musl.ts")).testMusl,
    meaning: "[files]: tests the cpu backend's dylib for musl, with Bun's build for musl",
  },
  bench: {
    load: async () => (await import("./built.ts")).runBenchmarks,
    meaning:
      "[names]: builds, and runs all benchmarks in bench/, or those that are named; or one name with its options",
  },
  demo: { load: async () => (await import("./built.ts")).runDemo },
  train: { load: async () => (await import("./built.ts")).runTrain },
  generate: { load: async () => (await import("./built.ts")).runGenerate },
  format: {
    load: async () => (await import("./format/format.ts")).formatEverything,
    meaning: "formats TypeScript, C++, MSL and Swift",
  },
  docs: {
    load: async () => (await import("./docs/site.ts")).buildDocs,
    meaning: "[--check] [--serve] [--base /path/]: builds the site of the documentation; --check opens it in a browser",
  },
  precedent: {
    load: async () => (await import("./precedent/precedent.ts")).precedentCommand,
    meaning:
      "[--corpus folders]: names what kernels and the dylib use of Metal that no other project does; --corpus reads " +
      "other projects, and writes the tables of what they use",
  },
  "verify:apple": {
    load: async () => (await import("./verify/verify.ts")).verifyApple,
    meaning:
      "[--list] [identifiers] [assumptions] [kernels] [suite] [paths]: asks this machine about the assumptions of " +
      "docs/apple.md, all or those that are named, and prints a report to paste",
  },
  release: {
    load: async () => (await import("./release/release.ts")).release,
    meaning: "[--local] [--platform name]: builds and packs the packages; --local adds them to projects of every kind",
  },
  mutate: {
    load: async () => (await import("./mutate/mutate.ts")).mutateCommand,
    meaning:
      "[--seed 1] [--count 20] [--skip 0] [--jobs 1] [--seconds 180] [folder, file or file:line]: builds, plants " +
      "mistakes in copies of the repository, one in each, runs the tests that reach them, and names those that survive",
  },
  fixtures: {
    load: async () => (await import("./fixtures/make.ts")).makeFixtures,
    meaning:
      "[--seed 7] [names]: writes the results of PyTorch in test/fixtures again, or only those of scripts with these " +
      "names; --seed draws other cases than the committed ones",
  },
};

await main(async () => {
  const [name = "", ...words] = process.argv.slice(2);
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command)
    throw new Failure(`Unknown command "${name}"; the commands are: ${Object.keys(commands).sort().join(", ")}.`);
  if (command.meaning && words.includes("--help")) return console.log(`bun run ${name} ${command.meaning}`);
  if (await installDependencies()) return launchAgain();
  const run = await command.load();
  await run(words);
});

/** Runs the command in a process that has seen no other `node_modules`. */
async function launchAgain(): Promise<void> {
  const { exited } = Bun.spawn([process.execPath, ...process.argv.slice(1)], {
    stdio: ["inherit", "inherit", "inherit"],
  });
  process.exitCode = await exited;
}
