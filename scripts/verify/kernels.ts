/** Compiles the library's kernels with each language version. */
import { run, tail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";

export interface CompiledKernels {
  readonly files: number;
  /** `Metal <version>: <file>: <diagnostic>`. */
  readonly failures: readonly string[];
}

/** @param paths files and folders; all kernels if empty */
export async function compileKernels(
  paths: readonly string[],
  versions: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<CompiledKernels> {
  const chosen = paths.length === 0 ? ["kernels"] : paths;
  const failures: string[] = [];
  let files = 0;
  for (const version of versions) {
    const words = ["metal", "check", "--format", "json", `--std=metal${version}`, ...chosen];
    const command = [process.execPath, "src/cli/orchard.ts", ...words];
    const { output, status } = await run(command, { cwd: packageRoot, environment: { ...environment } });
    const results = resultsOf(output);
    files = results.length;
    const failed = results.flatMap(({ file, diagnostics }) => {
      const error = diagnostics.find(({ severity }) => severity === "error");
      return error ? [`Metal ${version}: ${file}: ${error.message}`] : [];
    });
    failures.push(...failed);
    if (status !== 0 && failed.length === 0) failures.push(`Metal ${version}: ${tail(output, 3)}`);
    console.log(`  Metal ${version}: ${files} files, ${failed.length} failures`);
  }
  return { files, failures };
}

interface FileDiagnostics {
  readonly file: string;
  readonly diagnostics: readonly { readonly severity: string; readonly message: string }[];
}

function resultsOf(output: string): readonly FileDiagnostics[] {
  const line = output.split("\n").find((text) => text.startsWith('{"files":'));
  if (line === undefined) throw new Failure(`metal check: ${tail(output)}`);
  return (JSON.parse(line) as { files: readonly FileDiagnostics[] }).files;
}
