#!/usr/bin/env bun
/** The `orchard` command. It is loaded once the engine is known to run it. */
import { missingRuntime } from "../core/runtime.ts";

const problem = missingRuntime(process.versions);
if (problem !== undefined) {
  console.error(problem);
  process.exit(1);
}
const { endingWithReader } = await import("./pipes.ts");
const { runOrchard } = await import("./program.ts");
await endingWithReader(() => runOrchard(process.argv.slice(2)));
