#!/usr/bin/env bun
/** The `orchard` command. The rest is imported only after the runtime's version has been checked. */
import { missingRuntime } from "../core/runtime.ts";

const problem = missingRuntime(process.versions);
if (problem !== undefined) {
  console.error(problem);
  process.exit(1);
}
const { endingWithReader } = await import("./pipes.ts");
const { runOrchard } = await import("./program.ts");
await endingWithReader(() => runOrchard(process.argv.slice(2)));
