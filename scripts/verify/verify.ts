/** `bun run verify:apple`: checks the assumptions of docs/apple.md on a Mac, and prints a report to paste. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../src/cli/run.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { buildCpu } from "../cpu/build.ts";
import { Failure } from "../failure.ts";
import { reportFolder } from "../suite/report.ts";
import { build } from "../swift/command.ts";
import { setUp } from "../toolchain/setup.ts";
import { checks } from "./checks.ts";
import { compileKernels } from "./kernels.ts";
import { describeMachine } from "./machine.ts";
import { together } from "./outcome.ts";
import { type Assumption, assumptionsOf, byHand, readPage } from "./page.ts";
import { formatReport, type Part, type Verified } from "./report.ts";
import { Checks } from "./run_check.ts";

/** Metal's API validation, unless the caller sets it; slow compilation on a busy machine proves nothing. */
const environment = {
  METAL_DEVICE_WRAPPER_TYPE: "1",
  ORCHARD_METAL_COMPILE_TIMEOUT_MS: "600000",
  ...process.env,
} as Record<string, string>;

/** The requested checks. */
interface Request {
  readonly assumptions: readonly Assumption[];
  /** Files and folders of kernels; empty for all, undefined for none. */
  readonly kernels: readonly string[] | undefined;
  /** Files and folders of tests; empty for the suite, undefined for none. */
  readonly suite: readonly string[] | undefined;
}

/** Verifies everything, or the named parts. */
export async function verifyApple(words: readonly string[]): Promise<void> {
  const all = assumptionsOf(readPage());
  if (words.includes("--list")) return list(all);
  const request = requestOf(words, all);
  const swift = await built();
  const machine = await describeMachine(environment);
  const parts: Part[] = [];
  if (request.kernels) parts.push(await kernelsPart(request.kernels, machine.versions));
  if (request.suite) parts.push(await suitePart(request.suite));
  const verified = await verify(request.assumptions, new Checks(swift, machine.versions, environment));
  await publish(formatReport(machine, parts, verified));
  const failed = parts.some(({ passed }) => !passed) || verified.some(({ outcome }) => outcome.state === "fails");
  if (failed) process.exitCode = 1;
}

/** @throws {Failure} for an argument that is neither an identifier nor a part */
function requestOf(words: readonly string[], all: readonly Assumption[]): Request {
  if (words.length === 0) return { assumptions: all, kernels: [], suite: [] };
  const named = new Set(words);
  const chosen = all.filter(({ identifier }) => named.delete(identifier));
  const below = (part: string) => [...named].filter((word) => word === part || word.startsWith(`${part}/`));
  const [kernels, suite] = [below("kernels"), below("test")];
  const unknown = [...named].filter((word) => ![...kernels, ...suite, "assumptions", "suite"].includes(word));
  if (unknown.length > 0)
    throw new Failure(
      "verify:apple: expected identifiers of docs/apple.md, assumptions, kernels, suite, or paths below kernels/ and " +
        `test/, got "${unknown.join('", "')}". --list prints the identifiers.`,
    );
  const isSuite = named.has("suite");
  return {
    assumptions: named.has("assumptions") ? all : chosen,
    kernels: kernels.length > 0 ? kernels : undefined,
    suite: isSuite ? [] : suite.length > 0 ? suite : undefined,
  };
}

function list(all: readonly Assumption[]): void {
  const width = Math.max(...all.map(({ identifier }) => identifier.length));
  for (const { identifier, risk, checkedBy } of all)
    console.log(`${identifier.padEnd(width)}  ${risk.padEnd(6)}  ${checkedBy}`);
}

async function built(): Promise<SwiftToolchain> {
  const swift = await setUp();
  if (!swift) throw new Failure("verify:apple needs the metal backend, which ORCHARD_SKIP_METAL=1 leaves out.");
  await buildCpu();
  await build(swift);
  return swift;
}

async function kernelsPart(paths: readonly string[], versions: readonly string[]): Promise<Part> {
  console.log(`\n── kernels at Metal ${versions.join(", ")}`);
  const { files, failures } = await compileKernels(paths, versions, environment);
  const detail = `${files} files at Metal ${versions.join(", ")}: ${failures.length} failures`;
  return { name: "kernels", passed: failures.length === 0, detail: [detail, ...failures.slice(0, 5)].join("; ") };
}

/** The suite's last line has its counts. */
async function suitePart(files: readonly string[]): Promise<Part> {
  console.log("\n── suite");
  const command = [process.execPath, "scripts/launch.ts", "test", ...files];
  const { output, status } = await run(command, { cwd: packageRoot, environment, onLine: (line) => console.log(line) });
  const counts = output.match(/^\d+ passed, \d+ failed$/gm)?.at(-1) ?? `no counts, status ${status}`;
  const failures = /\nWhat failed\n([\s\S]*?)\n\n/.exec(output)?.[1]?.split("\n").slice(0, 5) ?? [];
  return { name: "suite", passed: status === 0, detail: [counts, ...failures.map((line) => line.trim())].join("; ") };
}

async function verify(assumptions: readonly Assumption[], runs: Checks): Promise<Verified[]> {
  const verified: Verified[] = [];
  for (const assumption of assumptions) {
    const { identifier, checkedBy } = assumption;
    const found = checks[identifier];
    if (found) console.log(`\n── ${identifier}: ${checkedBy}`);
    const outcomes = found
      ? await inTurn(found, (check) => runs.run(identifier, check))
      : [{ state: "unknown", evidence: checkedBy.slice(byHand.length) } as const];
    verified.push({ assumption, outcome: together(outcomes) });
  }
  return verified;
}

async function inTurn<Item, Result>(items: readonly Item[], body: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (const item of items) results.push(await body(item));
  return results;
}

async function publish(report: string): Promise<void> {
  const folder = reportFolder();
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "verify-apple.md");
  await Bun.write(path, report);
  console.log(`\n${report}\nTo tell what this machine says, open an issue with the report: ${path}`);
}
