/**
 * Checks that no line is longer than 120 columns. Formatters wrap code; strings, comments and prose are wrapped by
 * hand.
 */
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { filesOf } from "./files.ts";

export const lineWidth = 120;

export const lineFiles = (): string[] =>
  filesOf([
    "{src,test,scripts,bench,examples}/**/*.{ts,tsx,js,py,css,html}",
    "docs/**/*.md",
    "test/**/*.{md,swift,metal,h,cpp}",
    "{README,CHANGELOG,CONTRIBUTING,SECURITY}.md",
    "{native,kernels}/**/*.{h,cpp,metal}",
    "swift/Package.swift",
    "swift/{Sources,Tests}/**/*.{swift,h,c,cpp}",
    "swift/Sources/MetalRuntime/metal/metal_*",
  ]);

/** Returns the lines of the text that are too long, as `file:line`, with their length. */
export function longLines(file: string, text: string): string[] {
  const mayStay = file.endsWith(".md") ? isUnbreakableMarkdown : isUnbreakableCode;
  return text.split("\n").flatMap((line, index) => {
    const columns = Array.from(line).length;
    if (columns <= lineWidth || mayStay(line)) return [];
    return [`${file}:${index + 1}: ${columns} columns; the limit is ${lineWidth}`];
  });
}

/** Matches a row of a table, or a single link or address, possibly as a list item. */
const isUnbreakableMarkdown = (line: string): boolean =>
  /^\s*\|/.test(line) || /^\s*([-*>]|\d+\.)?\s*(\[[^\]]*\]\(\S+\)|\S+)[.,;:]?$/.test(line);

/** An address alone in a comment. */
const isUnbreakableCode = (line: string): boolean => /^\s*(\/\/+|\*|#)?\s*https?:\/\/\S+$/.test(line);

export async function lineProblems(): Promise<string[]> {
  const problems = lineFiles().map(async (file) => longLines(file, await Bun.file(join(packageRoot, file)).text()));
  return (await Promise.all(problems)).flat();
}
