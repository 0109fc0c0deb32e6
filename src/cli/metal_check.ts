/** `orchard metal check`: compiles kernel files in parallel and reports their diagnostics in the chosen format. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { MultiBar } from "cli-progress";
import { BackendError } from "../core/errors.ts";
import { processorLimit } from "../core/limits.ts";
import { moduleFile } from "../core/place.ts";
import { reportErrors } from "../core/report_errors.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { type FileResult, type Format, formatResults, parseDiagnostics } from "./diagnostics.ts";
import { checkKernel, type KernelOptions } from "./kernels.ts";

export interface CheckOptions extends KernelOptions {
  readonly format: Format;
  /** Number of files to compile in parallel. Default: the number of processors. */
  readonly jobs?: number | undefined;
}

/** The default language version: the newest that macOS 15 supports, which has no tensors. */
const defaultVersion = "metal3.2";

/**
 * Prints the diagnostics of each file, and of each `.metal` file in each folder. A file may call functions that another
 * of them defines. Returns the exit code.
 */
export function checkKernels(paths: readonly string[], given: CheckOptions): Promise<number> {
  const options = { ...given, std: given.std ?? defaultVersion };
  return reportErrors(async () => {
    const files = [...new Set(paths.flatMap(filesOf))];
    if (files.length === 0) {
      console.error(`There is no .metal file in ${paths.join(", ")}.`);
      return 1;
    }
    const jobs = Math.min(options.jobs ?? processorLimit().count, files.length);
    const results =
      jobs > 1
        ? await checkInChildren(files, options, jobs)
        : files.map((file) => check(file, linkedTo(file, files, options)));
    const text = formatResults(results, options.format);
    if (text) console.log(text);
    return results.some(fails) ? 1 : 0;
  });
}

/** Output without any parsed diagnostic counts as a failure too. */
const fails = ({ text }: FileResult): boolean =>
  text !== "" && !parseDiagnostics(text).every(({ severity }) => severity !== "error");

function filesOf(path: string): string[] {
  const isFolder = withFileErrors("metal check", path, () => statSync(path).isDirectory());
  if (!isFolder) return [path];
  const names = readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".metal"));
  return names.sort().map((name) => join(path, name));
}

/** The options for one file of several. With `library`, all definitions are compared once, at the first file. */
function linkedTo(file: string, files: readonly string[], options: CheckOptions): CheckOptions {
  const others = files.filter((other) => other !== file);
  const isFirst = file === files[0];
  return { ...options, link: [...(options.link ?? []), ...others], library: options.library && isFirst };
}

/** Few files call functions of another file, so the other files are read only if a definition is missing. */
function check(file: string, options: CheckOptions): FileResult {
  const start = performance.now();
  const { link, library, ...alone } = options;
  let text = checkKernel(file, library ? options : alone) ?? "";
  if (text.includes("undefined symbols: ") && link?.length && !library)
    try {
      text = checkKernel(file, options) ?? "";
    } catch (error) {
      if (!(error instanceof BackendError)) throw error; // together, the files exceed the maximum size of a source
    }
  return { file, text: text.trimEnd(), seconds: (performance.now() - start) / 1000 };
}

/** A compilation blocks its process, so each file is compiled in a child process. */
async function checkInChildren(files: readonly string[], options: CheckOptions, jobs: number): Promise<FileResult[]> {
  const results: FileResult[] = [];
  const bars = new MultiBar({ format: "{bar} {value}/{total} {file}", hideCursor: true, clearOnComplete: true });
  const bar = bars.create(files.length, 0, { file: "" });
  let next = 0;
  const work = async () => {
    for (let at = next++; at < files.length; at = next++) {
      results[at] = await checkInChild(files[at], linkedTo(files[at], files, options));
      bar.increment(1, { file: files[at] });
    }
  };
  try {
    await Promise.all(Array.from({ length: jobs }, work));
  } finally {
    bars.stop();
  }
  return results;
}

async function checkInChild(file: string, options: CheckOptions): Promise<FileResult> {
  const { include = [], define = [], std, link = [], library } = options;
  const words = [
    ...link.flatMap((other) => ["--link", other]),
    ...(library ? ["--library"] : []),
    ...include.flatMap((folder) => ["-I", folder]),
    ...define.flatMap((macro) => ["-D", macro]),
    ...(std ? [`--std=${std}`] : []),
  ];
  const command = [process.execPath, moduleFile("cli/orchard"), "metal", "check"];
  const child = Bun.spawn([...command, "--format", "json", ...words, "--", file], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, problem] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  try {
    const { files } = JSON.parse(out) as { files: FileResult[] };
    return files[0];
  } catch {
    return { file, text: `${file}: error: ${problem.trim() || "the process that compiled it ended"}`, seconds: 0 };
  }
}
