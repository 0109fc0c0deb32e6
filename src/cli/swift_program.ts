/** Compiles Swift programs that `import Metal`: against the software device on Linux, against Apple's on macOS. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { swiftCommand } from "../core/commands.ts";
import { cacheFolder } from "../core/paths.ts";
import { testingCompiler } from "./swift_compiler.ts";
import { buildModules, collect, importFlags, linkFlags, moduleEnvironment } from "./swift_module.ts";
import { findSwift, oldestSwift, type SwiftToolchain } from "./toolchain.ts";

/** Returns the message if no Swift is found. */
export const noSwift = (): string => `There is no Swift ${oldestSwift} or newer on this machine: ${swiftCommand()}`;

/** Compiles a program. Returns its path, or the compiler's output if it does not compile. */
export async function compileProgram(sources: readonly string[]): Promise<{ program: string } | { problem: string }> {
  const missing = sources.find((source) => !existsSync(source));
  if (missing !== undefined) return { problem: `There is no file ${missing}.` };
  const swift = findSwift();
  if (!swift) return { problem: noSwift() };
  const modules = process.platform === "linux" ? await buildModules(swift) : undefined;
  if (modules && "problem" in modules) return modules;
  const parent = join(cacheFolder(), "programs");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, `${basename(sources[0] ?? "program", ".swift")}-`));
  const program = join(folder, basename(sources[0] ?? "program", ".swift"));
  const words = [...programFlags(swift, modules?.folder), ...arranged(sources, folder), "-o", program];
  const compiler = process.platform === "linux" ? testingCompiler(swift.swiftc) : swift.swiftc;
  const { status, output } = await collect(swift, [compiler, ...words], process.cwd());
  if (status === 0) return { program };
  rmSync(folder, { recursive: true });
  return { problem: output.replaceAll(join(folder, "main.swift"), sources[0] ?? "") };
}

function programFlags(swift: SwiftToolchain, modules: string | undefined): string[] {
  if (modules === undefined) return ["-O"];
  const fixed = ["-O", "-static-stdlib", "-Xlinker", "--wrap=_CFProcessPath"]; // program_path.c says why
  return [...fixed, ...importFlags(modules), ...linkFlags(modules), ...swift.compilerFlags];
}

/**
 * With several files, Swift requires top-level statements in `main.swift` or a type that is `@main`. If there is
 * neither, the first file is compiled under the name `main.swift`.
 */
function arranged(sources: readonly string[], folder: string): string[] {
  if (sources.some((source) => /^\s*@main\b/m.test(readFileSync(source, "utf8"))))
    return ["-parse-as-library", ...sources];
  const [first, ...others] = sources;
  if (first === undefined || others.length === 0 || sources.some((source) => basename(source) === "main.swift"))
    return [...sources];
  symlinkSync(resolve(first), join(folder, "main.swift"));
  return [join(folder, "main.swift"), ...others];
}

/**
 * Compiles a program of one or more files and runs it with these arguments (`orchard swift`). Its `Bundle.main` is the
 * folder of the first file. Returns its exit code, or 1 with the compiler's output on stderr.
 */
export async function runProgram(sources: readonly string[], programArguments: readonly string[]): Promise<number> {
  const result = await compileProgram(sources);
  if ("problem" in result) {
    console.error(result.problem);
    return 1;
  }
  const home = join(dirname(realpathSync(sources[0] ?? ".")), basename(result.program));
  const child = Bun.spawn([result.program, ...programArguments], {
    env: { ...process.env, ...moduleEnvironment(), ORCHARD_PROGRAM_PATH: home },
    stdio: ["inherit", "inherit", "inherit"],
  });
  const status = await child.exited;
  rmSync(dirname(result.program), { recursive: true });
  return status;
}
