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

/** The programs of a document: blocks that continue the one above import nothing. Loops of training are cut short. */
export const programsOf = (document: string): Example[] =>
  examplesOf(document)
    .filter(({ program }) => program.includes("import "))
    .map((example) => ({ ...example, program: example.program.replace(/step < \d{4};/, "step < 3;") }));

/** Writes the text that programs of docs/training.md read in their working folder. */
export const writeBooks = (folder: string): Promise<number> =>
  Bun.write(join(folder, "books", "one.txt"), "It was the best of times. ".repeat(4000));

/** What a program prints if it keeps its promises. */
export const promisedText = ({ promised }: Example): string => promised.map((line) => `${line}\n`).join("");
