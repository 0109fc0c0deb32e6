/** Random numbers inside of `vmap`: if examples draw different numbers, each has a separate start of the generator. */
import type { BatchLevel } from "../../tensor/batched.ts";

/** The start of the random numbers of each example. */
export interface ExampleStarts {
  readonly level: BatchLevel;
  /** For each example, the fields of the attributes that differ between examples. */
  readonly examples: readonly object[];
}

/** Returns the starts in a primitive's attributes, undefined if all examples draw the same numbers. */
export function startsIn(attributes: unknown): ExampleStarts | undefined {
  if (typeof attributes !== "object" || attributes === null) return undefined;
  return (attributes as { readonly perExample?: ExampleStarts }).perExample;
}

/** Returns the attributes for one example. */
export function attributesOf(attributes: unknown, level: BatchLevel, at: number): unknown {
  const starts = startsIn(attributes);
  if (starts?.level !== level) return attributes;
  return { ...(attributes as object), perExample: undefined, ...starts.examples[at] };
}
