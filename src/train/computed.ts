/** Describes where a run was computed, in three lines. */
import type { Codepath } from "../backend/codepaths.ts";
import { cpuLibrary } from "../backend/cpu/loader.ts";
import { cpuInfo } from "../backend/cpu/report.ts";
import { counted } from "../core/plural.ts";

/**
 * Describes the backend, the number of calls that each backend ran, and the operations that fell back to another
 * backend, with the reason.
 */
export function describeComputed(backend: string, paths: readonly Codepath[]): string {
  const calls = new Map<string, number>();
  for (const path of paths) calls.set(path.backend, (calls.get(path.backend) ?? 0) + path.calls);
  const ran = [...calls].map(([name, count]) => `${count.toLocaleString("en")} on ${name}`);
  const other = paths.filter((path) => path.backend !== backend);
  const names = [...new Set(other.map(({ operation }) => operation))];
  const shown = names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
  return [
    `computed on ${describeBackend(backend)}`,
    `operations  ${ran.join(", ") || "none"}`,
    names.length === 0
      ? "fallbacks   none"
      : `fallbacks   ${counted(names.length, "operation")} (${shown}): ${other[0].reason}`,
  ].join("\n");
}

function describeBackend(backend: string): string {
  if (backend === "cpu") {
    const { isa, threads, blas } = cpuInfo(cpuLibrary().native);
    return `cpu: ${isa}, ${counted(threads, "thread")}, ${blas ? blas.name : "built-in linear algebra"}`;
  }
  if (backend === "metal") return process.platform === "darwin" ? "metal: the GPU" : "metal: a software device";
  return `${backend}: plain TypeScript`;
}
