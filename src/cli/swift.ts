/** Compiles Swift programs that `import Metal`: on Linux against the software device, on macOS against Apple's. */
import { mkdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { swiftCommand } from "../core/commands.ts";
import { cacheFolder, packageRoot } from "../core/paths.ts";
import { findSwift, oldestSwift, type SwiftToolchain } from "./toolchain.ts";

const swiftFolder = join(packageRoot, "swift");

/** Compiles a program and returns its path, or the compiler's text where it does not compile. */
export async function compileProgram(sources: readonly string[]): Promise<{ program: string } | { problem: string }> {
  const swift = findSwift();
  if (!swift) return { problem: `There is no Swift ${oldestSwift} or newer on this machine: ${swiftCommand()}` };
  const problem = process.platform === "linux" ? await buildModule(swift) : undefined;
  if (problem) return { problem };
  const folder = join(cacheFolder(), "programs");
  mkdirSync(folder, { recursive: true });
  const program = join(folder, `${basename(sources[0] ?? "program", ".swift")}-${process.pid}`);
  const { status, output } = await collect(
    swift,
    [swift.swiftc, ...programOptions(swift), ...sources, "-o", program],
    process.cwd(),
  );
  return status === 0 ? { program } : { problem: output };
}

/** The flags of release builds on Linux: Swift's own library goes into the product, and symbols are left out. */
export const releaseFlags: readonly string[] =
  process.platform === "linux" ? ["-Xswiftc", "-static-stdlib", "-Xlinker", "-s"] : [];

/** Builds the module `Metal` as a static library, once for all programs. */
async function buildModule(swift: SwiftToolchain): Promise<string | undefined> {
  // The archiver only adds and replaces: an archive made anew holds nothing of source files that are gone.
  rmSync(join(swiftFolder, ".build", "release", "libMetal.a"), { force: true });
  const command = [swift.swift, "build", "-c", "release", "--product", "Metal", ...releaseFlags, ...swift.buildFlags];
  const { status, output } = await collect(swift, command, swiftFolder);
  return status === 0 ? undefined : output;
}

function programOptions(swift: SwiftToolchain): string[] {
  if (process.platform !== "linux") return ["-O"];
  const products = join(swiftFolder, ".build", "release");
  const header = join(swiftFolder, "Sources", "MetalRuntime", "include");
  const modules = ["-I", join(products, "Modules"), "-Xcc", `-fmodule-map-file=${join(header, "module.modulemap")}`];
  return ["-O", "-static-stdlib", ...modules, "-L", products, "-lMetal", "-lstdc++", ...swift.compilerFlags];
}

async function collect(swift: SwiftToolchain, command: string[], cwd: string) {
  const child = Bun.spawn(command, {
    cwd,
    env: { ...process.env, ...swift.environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = (await Promise.all([child.stdout.text(), child.stderr.text()])).join("");
  return { status: await child.exited, output };
}

/**
 * `orchard swift`: compiles a program and runs it with these arguments. Returns its exit code, or 1 with the compiler's
 * output on stderr.
 */
export async function runSwift(source: string, programArguments: readonly string[]): Promise<number> {
  const result = await compileProgram([source]);
  if ("problem" in result) {
    console.error(result.problem);
    return 1;
  }
  const child = Bun.spawn([result.program, ...programArguments], { stdio: ["inherit", "inherit", "inherit"] });
  const status = await child.exited;
  await Bun.file(result.program).delete();
  return status;
}
