/** Finds programs in Metal Shading Language in strings of other languages' files. */
import type { SourceFile } from "./preprocessor.ts";

/** Strings that may contain a program, in Swift and Python, C++, Rust, TypeScript; the first group is the program. */
const texts: Readonly<Record<string, RegExp>> = {
  swift: /#*"""\n([\s\S]*?)"""/g,
  py: /(?:"""|''')([\s\S]*?)(?:"""|''')/g,
  mm: /R"([^(\s"]*)\(([\s\S]*?)\)\1"/g,
  cpp: /R"([^(\s"]*)\(([\s\S]*?)\)\1"/g,
  h: /R"([^(\s"]*)\(([\s\S]*?)\)\1"/g,
  rs: /r(#*)"([\s\S]*?)"\1/g,
  ts: /`([^`]*)`|((?:"(?:[^"\\\n]|\\.)*"(?:\s*\+\s*)?)+)/g,
};

const isProgram = (text: string): boolean =>
  /\[\[\s*(thread|threadgroup|simdgroup|buffer|kernel|host_name)|metal_stdlib/.test(text);

/** Returns each program, preceded by empty lines, so that its line numbers are the file's. */
export function embeddedPrograms({ path, text: whole }: SourceFile): SourceFile[] {
  const text = path.endsWith(".ts") ? withoutDocumentation(whole) : whole;
  const pattern = texts[path.slice(path.lastIndexOf(".") + 1)];
  if (!pattern || !isProgram(text)) return [];
  const found: SourceFile[] = [];
  for (const match of text.matchAll(pattern)) {
    const quoted = pattern === texts["ts"] && match[2] !== undefined;
    const body = quoted ? unquoted(match[2]) : (match[2] ?? match[1] ?? "");
    if (!isProgram(body)) continue;
    const start = text.indexOf(body, match.index);
    const lines = text.slice(0, start < 0 ? match.index : start).split("\n").length - 1;
    found.push({ path, text: "\n".repeat(lines) + body });
  }
  return found;
}

/** Strings joined by `+`, one per line. */
const unquoted = (text: string): string =>
  [...text.matchAll(/"((?:[^"\\\n]|\\.)*)"/g)]
    .map(([, part]) => part.replace(/\\n/g, "").replace(/\\(.)/g, "$1"))
    .join("\n");

const withoutDocumentation = (text: string): string =>
  text.replace(/\/\*\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ""));
