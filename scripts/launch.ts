/**
 * The commands of package.json: `bun run <name>` is `bun scripts/launch.ts <name>`. On a fresh clone nothing is
 * installed yet, so this file and what it imports use Bun alone, and a command's module is imported once the
 * dependencies are there.
 */
import { installDependencies } from "./dependencies.ts";
import { Failure, main } from "./failure.ts";

type Command = (words: readonly string[]) => Promise<unknown>;

/** Each command's module, and the function in it that gets the words after the command's name. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  setup: async () => (await import("./toolchain/setup.ts")).setUp,
  build: async () => (await import("./built.ts")).buildAll,
  check: async () => (await import("./suite/suite.ts")).checkEverything,
  test: async () => (await import("./suite/suite.ts")).testEverything,
  bench: async () => (await import("./built.ts")).runBenchmarks,
  demo: async () => (await import("./built.ts")).runDemo,
  train: async () => (await import("./built.ts")).runTrain,
  generate: async () => (await import("./built.ts")).runGenerate,
  format: async () => (await import("./format/format.ts")).formatEverything,
  fixtures: async () => (await import("./fixtures/make.ts")).makeFixtures,
};

await main(async () => {
  const [name = "", ...words] = process.argv.slice(2);
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command)
    throw new Failure(`There is no command "${name}"; there are: ${Object.keys(commands).sort().join(", ")}.`);
  await installDependencies();
  const run = await command();
  await run(words);
});
