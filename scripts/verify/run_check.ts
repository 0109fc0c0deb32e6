/** Runs the checks of assumptions, each in a separate process. */
import { join } from "node:path";
import { run, tail } from "../../src/cli/run.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { counted } from "../../src/core/plural.ts";
import { type Counts, countXCTest } from "../counts.ts";
import { runTestFiles } from "../suite/bun_test.ts";
import { reportFolder } from "../suite/report.ts";
import { runSwiftTests } from "../suite/swift_tests.ts";
import type { Check } from "./checks.ts";
import { compileKernels } from "./kernels.ts";
import type { Outcome } from "./outcome.ts";

const folder = join(packageRoot, "scripts", "verify");

/** Shares results between checks: a program that several assumptions need runs once. */
export class Checks {
  private readonly known = new Map<string, Promise<Outcome>>();

  constructor(
    private readonly swift: SwiftToolchain,
    private readonly versions: readonly string[],
    private readonly environment: Readonly<Record<string, string>>,
  ) {}

  run(identifier: string, check: Check): Promise<Outcome> {
    const key = JSON.stringify(check.kind === "probe" || check.kind === "program" ? { identifier, check } : check);
    const known = this.known.get(key) ?? this.start(identifier, check);
    this.known.set(key, known);
    return known;
  }

  private start(identifier: string, check: Check): Promise<Outcome> {
    switch (check.kind) {
      case "probe":
        return this.probe(identifier);
      case "program":
        return this.program(identifier);
      case "swift":
        return this.swiftTests(check.names, { ...this.environment, ...check.environment });
      case "tests":
        return this.tests(check.files, { ...this.environment, ...check.environment });
      case "build":
        return Promise.resolve({ state: "holds", evidence: "this command's build passed" }); // otherwise nothing runs
      case "kernels":
        return this.kernels();
    }
  }

  private async probe(identifier: string): Promise<Outcome> {
    const { status, output } = await this.bun([join(folder, "child.ts"), identifier]);
    try {
      return JSON.parse(output.trimEnd().split("\n").at(-1)!) as Outcome;
    } catch {
      return { state: "fails", evidence: `the probe's process ended with status ${status}: ${tail(output, 2)}` };
    }
  }

  /** A status of 2 means that this machine can't tell. */
  private async program(identifier: string): Promise<Outcome> {
    const source = join(folder, "programs", `${identifier}.swift`);
    const { status, output } = await this.bun(["src/cli/orchard.ts", "swift", source]);
    const evidence = tail(output, 1) || `the program ended with status ${status}`;
    return { state: status === 0 ? "holds" : status === 2 ? "unknown" : "fails", evidence };
  }

  private bun(words: readonly string[]) {
    return run([process.execPath, ...words], { cwd: packageRoot, environment: { ...this.environment } });
  }

  private async swiftTests(names: readonly string[], environment: Readonly<Record<string, string>>): Promise<Outcome> {
    const { output, status } = await runSwiftTests(this.swift, { names, environment });
    return outcomeOf(countXCTest(output, status), names.join(", "));
  }

  private async tests(files: readonly string[], environment: Readonly<Record<string, string>>): Promise<Outcome> {
    const report = join(reportFolder(), "verify.xml");
    const { counts } = await runTestFiles(files, { report, environment });
    return outcomeOf(counts, files.join(", "));
  }

  private async kernels(): Promise<Outcome> {
    const { files, failures } = await compileKernels([], this.versions, this.environment);
    const evidence = `${files} kernel files at Metal ${this.versions.join(", ")}: ${failures.length} failures`;
    return {
      state: failures.length === 0 ? "holds" : "fails",
      evidence: [evidence, ...failures.slice(0, 3)].join("; "),
    };
  }
}

/** Tests that were all skipped prove nothing. */
function outcomeOf({ passed, failed, skipped, failures }: Counts, what: string): Outcome {
  if (failed > 0)
    return { state: "fails", evidence: `${what}: ${failed} of ${passed + failed} tests failed: ${failures[0]}` };
  if (passed === 0) return { state: "unknown", evidence: `${what}: no test ran, ${skipped} were skipped` };
  return { state: "holds", evidence: `${what}: ${counted(passed, "test")} passed` };
}
