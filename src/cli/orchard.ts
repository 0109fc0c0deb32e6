#!/usr/bin/env bun
/** The `orchard` command. */
import { runOrchard } from "./program.ts";

await runOrchard(process.argv.slice(2));
