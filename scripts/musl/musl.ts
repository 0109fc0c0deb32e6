/** `bun run test:musl`: tests the release's dylib for musl with Bun's build for musl. */
import { testAll } from "../arm64/arm64.ts";
import { chooseFiles } from "../arm64/tests.ts";
import { Failure } from "../failure.ts";
import { withSpinner } from "../progress.ts";
import { buildPortable } from "../release/dylib.ts";
import { installMusl } from "./system.ts";

/** @param words test files, or folders of them; by default, all tests of operations and the cpu backend */
export async function testMusl(words: readonly string[]): Promise<void> {
  if (process.platform !== "linux") throw new Failure("test:musl: expected Linux, whose programs musl can load.");
  const files = chooseFiles(words);
  if (files.length === 0) throw new Failure(`There is no test of the cpu backend in ${words.join(", ")}.`);
  const bun = await withSpinner("Preparing musl", installMusl);
  const library = await withSpinner("Building the cpu backend for musl", (progress) =>
    buildPortable(process.arch === "arm64" ? "arm64-musl" : "x64-musl", progress),
  );
  await testAll([{ name: "musl", bun, library, isEmulated: true }], files);
}
