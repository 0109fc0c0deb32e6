/** Parses a compiler's diagnostics and writes them in formats that editors and CI systems read. */
import packageFile from "../../package.json" with { type: "json" };

/** One diagnostic. `line` and `column` count from 1; 0 if unknown. */
export interface Diagnostic {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly severity: "error" | "warning" | "note";
  readonly message: string;
}

/** The compiler's output for one file. `text` is empty if there are no diagnostics. */
export interface FileResult {
  readonly file: string;
  readonly text: string;
  readonly seconds: number;
}

export const formats = ["text", "json", "sarif", "junit", "github"] as const;
export type Format = (typeof formats)[number];

const isError = ({ severity }: Diagnostic) => severity === "error";
const head = /^(.+?):(?:(\d+):(?:(\d+):)?)? (error|warning|note): (.*)$/;

/** Parses the diagnostics in output such as clang's. Source lines and carets are skipped. */
export function parseDiagnostics(text: string): Diagnostic[] {
  return text.split("\n").flatMap((row) => {
    const [, file, line, column, severity, message] = head.exec(row) ?? [];
    if (!file || !severity) return [];
    return [
      {
        file,
        line: Number(line ?? 0),
        column: Number(column ?? 0),
        severity: severity as Diagnostic["severity"],
        message: message ?? "",
      },
    ];
  });
}

/**
 * Formats the results of files, without a trailing line break.
 *
 * @param tool name of the tool that found them
 */
export function formatResults(
  results: readonly FileResult[],
  format: Format,
  tool: string = "orchard metal check",
): string {
  return writers[format](results, tool);
}

const writers: Record<Format, (results: readonly FileResult[], tool: string) => string> = {
  text: (results) => results.map(({ file, text }) => text || `${file}: no problems`).join("\n"),
  json: (results) =>
    JSON.stringify({
      files: results.map(({ text, ...result }) => ({ ...result, text, diagnostics: parseDiagnostics(text) })),
    }),
  sarif: (results, tool) =>
    JSON.stringify({
      $schema: "https://json.schemastore.org/sarif-2.1.0.json",
      version: "2.1.0",
      runs: [
        {
          tool: { driver: { name: tool, version: packageFile.version } },
          results: all(results).map(sarifResult),
        },
      ],
    }),
  junit: (results, tool) => {
    const failed = results.filter(({ text }) => parseDiagnostics(text).some(isError)).length;
    return [
      '<?xml version="1.0" encoding="UTF-8"?>',
      `<testsuites><testsuite name="${tool}" tests="${results.length}" failures="${failed}">`,
      ...results.map(junitCase),
      "</testsuite></testsuites>",
    ].join("\n");
  },
  github: (results) => all(results).map(githubLine).join("\n"),
};

const all = (results: readonly FileResult[]) => results.flatMap(({ text }) => parseDiagnostics(text));

/** Whether a diagnostic has a source location. Misuse of the API has none. */
const isPlaced = ({ file, line }: Diagnostic): boolean => line > 0 || file !== "orchard";

function sarifResult(diagnostic: Diagnostic) {
  const { file, line, column, severity, message } = diagnostic;
  if (!isPlaced(diagnostic)) return { level: severity, message: { text: message } };
  const region = line > 0 ? { region: { startLine: line, ...(column > 0 ? { startColumn: column } : {}) } } : {};
  return {
    level: severity,
    message: { text: message },
    locations: [{ physicalLocation: { artifactLocation: { uri: encodeURI(file) }, ...region } }],
  };
}

function junitCase({ file, text, seconds }: FileResult): string {
  const open = `<testcase classname="metal" name="${inXml(file)}" time="${seconds.toFixed(3)}"`;
  const first = parseDiagnostics(text).find(isError);
  if (!first) return `${open}/>`;
  return `${open}><failure message="${inXml(first.message)}">${inXml(text)}</failure></testcase>`;
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const inXml = (text: string) => text.replace(/[&<>"]/g, (letter) => entities[letter] ?? letter);

/** A GitHub Actions workflow command, which becomes an annotation at the line. */
function githubLine(diagnostic: Diagnostic): string {
  const { file, line, column, severity, message } = diagnostic;
  const kind = severity === "note" ? "notice" : severity;
  const place = [
    ...(isPlaced(diagnostic) ? [`file=${inProperty(file)}`] : []),
    ...(line > 0 ? [`line=${line}`] : []),
    ...(column > 0 ? [`col=${column}`] : []),
    "title=Metal",
  ];
  return `::${kind} ${place.join(",")}::${inCommand(message)}`;
}

const inCommand = (text: string) => text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
const inProperty = (text: string) => inCommand(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
