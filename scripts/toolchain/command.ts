import { Failure } from "../failure.ts";
import { installHook, offerHook } from "./hook.ts";
import { setUp } from "./setup.ts";

/** `bun run setup`. @throws {Failure} for an unknown word */
export async function setUpCommand(words: readonly string[]): Promise<void> {
  const unknown = words.find((word) => word !== "--hook");
  if (unknown !== undefined) throw new Failure(`setup: unknown option ${unknown}; the only option is --hook`);
  await setUp();
  if (words.includes("--hook")) console.log(`Commits are checked by ${await installHook()}`);
  else offerHook();
}
