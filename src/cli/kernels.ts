import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { metalContext } from "../backend/metal/context.ts";
import { generatedHeaders } from "../backend/metal/launch.ts";
import { createLibrary } from "../backend/metal/pipeline.ts";
import { isAboutSource } from "../backend/metal/report.ts";
import { ArgumentError, KernelCompileError } from "../core/errors.ts";
import { packaged } from "../core/packaged.ts";
import { packageRoot } from "../core/paths.ts";
import { withFileErrors } from "../io/file_errors.ts";
// These modules define the enumerations and structs that kernels include.
import "../fft/primitive.ts";
import "../linalg/index.ts";
import "../ops/index.ts";
import "../optim/gradients/primitive.ts";
import "../optim/primitive.ts";
import "../quant/primitive.ts";

/** How files are compiled. */
export interface KernelOptions {
  /** Folders to search for included files. */
  readonly include?: readonly string[] | undefined;
  /** Macros to define: `NAME` or `NAME=value`. */
  readonly define?: readonly string[] | undefined;
  /** The language version in the notation of Apple's compiler: `metal3.1`. */
  readonly std?: string | undefined;
  /** Other files of the same library, whose functions the file may call. Only the software device links them. */
  readonly link?: readonly string[] | undefined;
  /** Whether a function that two of the files define is an error. */
  readonly library?: boolean | undefined;
}

/**
 * Compiles a `.metal` file without running it; on Linux, every kernel in both passes. Returns the compiler's
 * diagnostics, or undefined if there are none. `#include "…"` searches the file's folder, the folders in `include`, and
 * `kernels/`.
 */
export function checkKernel(path: string, options: KernelOptions = {}): string | undefined {
  const context = metalContext();
  if (context.isSoftware) context.configure("whole", true);
  const { include, define = [], std, library: isLibrary = false } = options;
  const others = context.isSoftware ? (options.link ?? []) : [];
  const [first, ...linked] = [path, ...others].map((file) =>
    withFileErrors("metal check", file, () => includedTexts(file, include)),
  );
  const texts = withLinked(first, others, linked, isLibrary);
  const source = {
    source: texts.source,
    headers: texts.headers,
    fileName: path,
    macros: Object.fromEntries(define.map(macroOf)),
    languageVersion: std === undefined ? undefined : versionOf(std),
  };
  const before = context.reportMark();
  try {
    const library = createLibrary(context, "metal check", source);
    context.native.orchard_release(library);
    const warnings = context.reportSince(before).findings.filter(isAboutSource);
    const text = warnings.map(({ file, line, message }) => `${file}:${line}: warning: ${message}`).join("\n");
    return text ? shortened(text, texts) : undefined;
  } catch (error) {
    if (error instanceof KernelCompileError) return shortened(error.diagnostics, texts);
    throw error;
  }
}

/** The lines before a library's other files, by which the device knows them (MetalRuntime/rewrite/linking.h). */
function withLinked(first: Texts, others: readonly string[], linked: readonly Texts[], isLibrary: boolean): Texts {
  const mark = `#pragma orchard ${isLibrary ? "library" : "link"}`;
  const sources = linked.map(({ source }, index) => `\n${mark}\n#line 1 ${JSON.stringify(others[index])}\n${source}`);
  return {
    source: first.source + sources.join(""),
    headers: Object.assign({}, first.headers, ...linked.map(({ headers }) => headers)),
    files: [first, ...linked].flatMap(({ files }) => files),
  };
}

const macroOf = (text: string): [string, string] => {
  const [name, value] = text.split(/=(.*)/s, 2);
  return [name ?? text, value ?? "1"];
};

function versionOf(std: string): `${number}.${number}` {
  const found = /^(?:(?:macos|ios)-)?metal(\d+\.\d+)$/.exec(std)?.[1];
  if (found) return found as `${number}.${number}`;
  throw new ArgumentError(
    "metal check",
    "invalidSetting",
    `expected --std to be a Metal version such as metal3.1, got "${std}"`,
  );
}

/** A file and those that it includes. */
interface Texts {
  readonly source: string;
  /** Texts by the names of their files; see {@link nameOf}. Generated headers have names such as `generated/scan.h`. */
  readonly headers: Record<string, string>;
  /** The full paths of the included files. */
  readonly files: readonly string[];
}

/**
 * Returns a file's path relative to the current folder, or else its whole path. Kernels with relative paths are
 * compiled once for all clones. An unresolved include can't match such a name by chance.
 */
function nameOf(file: string): string {
  const name = relative(process.cwd(), file);
  return name.startsWith("..") ? file : `./${name}`;
}

/** Headers of the Metal standard library. Folders in `include` can't override them. */
const ownHeader = /^(metal_\w+|simd\/\w+\.h)$/;

/**
 * Reads a file and, recursively, the files it includes from its folder, `folders` and `kernels/`. Those `#include`
 * lines are rewritten to the resolved path, so that each file has one name. The package has no `kernels/`: its
 * JavaScript contains their texts, which keep their names. Unresolved includes are left to the compiler.
 */
export function includedTexts(path: string, folders: readonly string[] = []): Texts {
  const headers: Record<string, string> = {};
  const files: string[] = [];
  const generated = new Map(generatedHeaders().map(({ name, text }) => [name, text]));
  const search = [...folders.map((folder) => resolve(folder)), join(packageRoot, "kernels")];
  const read = (file: string): string => resolved(readFileSync(file, "utf8"), dirname(file));
  const resolved = (source: string, folder?: string): string =>
    source.replace(
      /^(\s*#\s*(?:include|import)\s*)(?:"([^"]+)"|<([^>]+)>)/gm,
      (line, start: string, quoted: string | undefined, angled: string | undefined) => {
        const name = quoted ?? angled!;
        if (generated.has(name)) headers[name] = generated.get(name)!;
        if (generated.has(name) || ownHeader.test(name)) return line;
        const places = quoted === undefined || folder === undefined ? search : [folder, ...search];
        const found = places.map((place) => join(place, name)).find(isFile);
        if (!found) {
          const text = packaged?.kernels()[name];
          if (text === undefined || name in headers) return line;
          headers[name] = text; // before it is read, since a file may include itself
          headers[name] = resolved(text);
          return line;
        }
        const real = realpathSync(found);
        const known = nameOf(real);
        if (!files.includes(real)) {
          files.push(real); // before it is read, since a file may include itself
          headers[known] = read(real);
        }
        return `${start}"${known}"`;
      },
    );
  return { source: read(resolve(path)), headers, files };
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;

/** Messages name files relative to the current folder. */
function shortened(text: string, { files }: Texts): string {
  const names = files.map(nameOf).filter((name) => name.startsWith("./"));
  return names.reduce(
    (all, name) => all.replaceAll(new RegExp(`(?<!\\.)${RegExp.escape(name)}`, "g"), name.slice(2)),
    text,
  );
}
