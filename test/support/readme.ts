import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";

/** A program in a document, with the lines that its comments say it prints. */
export interface Example {
  /** The heading above it. */
  readonly title: string;
  readonly program: string;
  readonly promised: readonly string[];
}

/**
 * The TypeScript blocks of a document that print something. `console.log(x); // text` and `// text` below it are
 * promises.
 */
export function examplesOf(document: string): Example[] {
  const text = readFileSync(join(packageRoot, document), "utf8");
  return [...text.matchAll(/```ts\n(.*?)```/gs)].map(({ 1: program = "", index }) => ({
    title: [...text.slice(0, index).matchAll(/^#+ (.*)$/gm)].at(-1)?.[1] ?? document,
    program,
    promised: [...program.matchAll(/^(?: *console\.log\(.*\); )?\/\/ (.*)$/gm)].map(([, line]) => line!),
  }));
}
