/** `orchard metal run`: runs a command under the checker and reports the findings in the chosen format. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reportErrors } from "../core/report_errors.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { type FileResult, type Format, formatResults } from "./diagnostics.ts";

export interface RunOptions {
  readonly format: Format;
  /** File to write the report to. Default: standard output, after the command has ended. */
  readonly output?: string | undefined;
}

/**
 * Runs the command with `ORCHARD_METAL_CHECK=1`. Its programs print findings as they occur, so the text format writes
 * no further report unless `output` is given.
 *
 * @returns the command's exit code; 1 if the command succeeds but there are errors
 */
export function runChecked(command: readonly string[], { format, output }: RunOptions): Promise<number> {
  return reportErrors(async () => {
    const folder = mkdtempSync(join(tmpdir(), "orchard-findings-"));
    const path = join(folder, "findings.jsonl");
    const start = performance.now();
    try {
      const status = await run(command, { ORCHARD_METAL_CHECK: "1", ORCHARD_FINDINGS: path });
      const seconds = (performance.now() - start) / 1000;
      const found = existsSync(path) ? parseFindings(readFileSync(path, "utf8")) : [];
      report(found.length > 0 ? resultsOf(found, seconds) : [{ file: command.join(" "), text: "", seconds }], {
        format,
        output,
      });
      return status === 0 && found.some(({ severity }) => severity === "error") ? 1 : status;
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

async function run(command: readonly string[], environment: Record<string, string>): Promise<number> {
  const [program = "", ...words] = command;
  const path = Bun.which(program);
  if (path === null) {
    console.error(`There is no program ${program}.`);
    return 127;
  }
  const child = Bun.spawn([path, ...words], {
    env: { ...process.env, ...environment },
    stdio: ["inherit", "inherit", "inherit"],
  });
  return child.exited;
}

/** The fields of a finding's JSON that reports use. */
interface Found {
  readonly kind: string;
  readonly severity: "error" | "note";
  readonly message: string;
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
}

/** Parses the findings of one or more processes, one per line, without duplicates. */
function parseFindings(text: string): Found[] {
  const lines = new Set(text.split("\n").filter(Boolean).map(diagnosticOf));
  return [...lines].map((line) => JSON.parse(line));
}

/** Findings that differ only in other fields, such as the count, are duplicates. */
function diagnosticOf(line: string): string {
  const { kind, severity, message, file = null, line: row = 0, column = 0 } = JSON.parse(line) as Found;
  return JSON.stringify({ kind, severity, message, file, line: row, column });
}

/** Groups the findings by file, like compiler diagnostics. */
function resultsOf(found: readonly Found[], seconds: number): FileResult[] {
  const files = Map.groupBy(found, ({ file }) => file ?? "orchard");
  return [...files].map(([file, findings]) => ({ file, text: findings.map(textOf).join("\n"), seconds }));
}

/** Formats a finding as the program printed it. */
function textOf({ kind, severity, message, file, line, column }: Found): string {
  const place = [file ?? "orchard", ...(line ? [line] : []), ...(line && column ? [column] : [])].join(":");
  return `${place}: ${severity}: ${message} [${kind}]`;
}

function report(results: readonly FileResult[], { format, output }: RunOptions): void {
  if (format === "text" && !output) return;
  const text = formatResults(results, format, "orchard metal run");
  if (output) withFileErrors("metal run", output, () => writeFileSync(output, `${text}\n`));
  else if (text) console.log(text);
}
