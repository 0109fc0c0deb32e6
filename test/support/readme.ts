import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";

/** A program in a document, with its expected output according to its comments. */
export interface Example {
  /** The heading above the program. */
  readonly title: string;
  readonly program: string;
  readonly promised: readonly string[];
}

/**
 * The TypeScript blocks of a document that print something. `console.log(x); // text` and `// text` below it state the
 * output.
 */
export function examplesOf(document: string): Example[] {
  const text = readFileSync(join(packageRoot, document), "utf8");
  return [...text.matchAll(/```ts\n(.*?)```/gs)].map(({ 1: program = "", index }) => ({
    title: [...text.slice(0, index).matchAll(/^#+ (.*)$/gm)].at(-1)?.[1] ?? document,
    program,
    promised: [...program.matchAll(/^(?: *console\.log\(.*\); )?\/\/ (.*)$/gm)].map(([, line]) => line),
  }));
}

/** The programs of a document: blocks that continue the previous one import nothing. Training loops are shortened. */
export const programsOf = (document: string): Example[] =>
  examplesOf(document)
    .filter(({ program }) => program.includes("import "))
    .map((example) => ({ ...example, program: example.program.replace(/step < \d{4};/, "step < 3;") }));

/** Writes the text that the programs of docs/training.md read into their working folder. */
export const writeBooks = (folder: string): Promise<number> =>
  Bun.write(join(folder, "books", "one.txt"), "It was the best of times. ".repeat(4000));

/** The expected output of a program. */
export const promisedText = ({ promised }: Example): string => promised.map((line) => `${line}\n`).join("");
