/** Checks the links of the repository's Markdown: their files and headings must exist. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { filesOf } from "../format/files.ts";
import { anchorOf } from "./anchors.ts";

/** The documents that people read in the repository and on the site. */
export const documents = (): string[] =>
  filesOf(["*.md", "docs/**/*.md", "test/**/*.md", "bench/**/*.md"]).filter((file) => !file.startsWith("docs/api/"));

export interface Link {
  readonly target: string;
  readonly line: number;
  /** Where the target begins in the text. */
  readonly start: number;
}

/** Returns the link targets of a text, including pictures and reference definitions, without code. */
export function linksOf(text: string): Link[] {
  const prose = text.replace(/^```.*?^```$/gms, blank).replace(/`[^`\n]+`/g, blank);
  const inline = [...prose.matchAll(/(\]\(\s*)([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\s*\)/g)];
  const defined = [...prose.matchAll(/^(\[[^\]]+\]:\s*)(\S+)$/gm)];
  return [...inline, ...defined].map(({ 1: before, 2: target, index }) => ({
    target: target,
    line: prose.slice(0, index).split("\n").length,
    start: index + before.length,
  }));
}

/**
 * Replaces the target of each relative link by the function's result. Without a result, only the link's words remain.
 *
 * @param linkTo gets the target without its anchor, and returns another, or undefined for none
 */
export function withLinks(text: string, linkTo: (path: string) => string | undefined): string {
  let result = text;
  for (const { target, start } of linksOf(text).sort((a, b) => b.start - a.start)) {
    if (/^[a-z][a-z+.-]*:|^#/i.test(target)) continue;
    const [path = "", anchor] = target.split("#", 2) as [string, string?];
    const to = linkTo(path);
    const end = start + target.length;
    if (to) result = `${result.slice(0, start)}${to}${anchor ? `#${anchor}` : ""}${result.slice(end)}`;
    else result = unlinked(result, start, end);
  }
  return result;
}

/** `[words](target)` and the picture `![words](target)` become `words`. */
function unlinked(text: string, start: number, end: number): string {
  const close = text.lastIndexOf("](", start);
  const open = text.lastIndexOf("[", close);
  const before = text.slice(0, text[open - 1] === "!" ? open - 1 : open);
  return before + text.slice(open + 1, close) + text.slice(text.indexOf(")", end) + 1);
}

/** Keeps the length, so that lines and positions stay the same. */
const blank = (text: string): string => text.replace(/[^\n]/g, " ");

/** Returns the anchors of a document's headings, as on GitHub and the site; repeated ones get a number. */
export function anchorsOf(text: string): Set<string> {
  const headings = [...text.replace(/^```.*?^```$/gms, "").matchAll(/^#{1,6} (.*?) *#*$/gm)];
  const seen = new Map<string, number>();
  return new Set(
    headings.map(([, title]) => {
      const anchor = anchorOf(title);
      const count = seen.get(anchor) ?? 0;
      seen.set(anchor, count + 1);
      return count === 0 ? anchor : `${anchor}-${count}`;
    }),
  );
}

/** Returns the broken links within the repository, as `file:line: …`. */
export function linkProblems(files: readonly string[] = documents(), root: string = packageRoot): string[] {
  return files.flatMap((file) =>
    linksOf(readFileSync(join(root, file), "utf8")).flatMap(({ line, target }) => {
      const problem = problemOf(root, file, target);
      return problem ? [`${file}:${line}: ${problem}`] : [];
    }),
  );
}

function problemOf(root: string, file: string, target: string): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined;
  const [path = "", anchor] = decodeURI(target).split("#", 2) as [string, string?];
  const linked = path === "" ? file : normalize(join(dirname(file), path));
  const full = join(root, linked);
  if (linked.startsWith("..") || !existsSync(full)) return `${linked} is not there`;
  if (anchor === undefined || statSync(full).isDirectory() || !linked.endsWith(".md")) return undefined;
  return anchorsOf(readFileSync(full, "utf8")).has(anchor) ? undefined : `${linked} has no heading "${anchor}"`;
}
