#!/usr/bin/env bun
/** The `orchard` command. */
import { endingWithReader } from "./pipes.ts";
import { runOrchard } from "./program.ts";

await endingWithReader(() => runOrchard(process.argv.slice(2)));
