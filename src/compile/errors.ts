import { join } from "node:path";
import { OrchardError } from "../core/errors.ts";
import { packageRoot } from "../core/paths.ts";

/**
 * A function can't be compiled: it reads elements, changes tensors outside its state, or behaves differently from call
 * to call.
 */
export class CompileError extends OrchardError {
  override readonly name = "CompileError";
}

const sources = join(packageRoot, "src");

/** Returns the caller's line of a stack trace, as ` (at file:line)`; empty if there is none outside of the library. */
export function placeIn({ stack = "" }: Error): string {
  const lines = stack.split("\n").filter((line) => /:\d+:\d+\)?$/.test(line));
  const line = lines.find((text) => !text.includes(sources) && !/node:|\bnative:/.test(text));
  const place = line?.match(/\(?([^\s()]+:\d+):\d+\)?$/)?.[1];
  return place === undefined ? "" : ` (at ${place})`;
}
