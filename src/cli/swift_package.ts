/** `orchard swift build`, `test`, `run` and `package`: SwiftPM in any package, with toolchain and modules set. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { testingCompiler } from "./swift_compiler.ts";
import { buildModules, collect, importFlags, linkFlags, moduleEnvironment } from "./swift_module.ts";
import { noSwift } from "./swift_program.ts";
import { findSwift, type SwiftToolchain } from "./toolchain.ts";

/** The commands of SwiftPM that this runs. */
export const packageCommands: readonly string[] = ["build", "test", "run", "package"];

/**
 * Runs SwiftPM in the current folder, whose manifest stays as it is. On Linux every target may import the modules that
 * stand in for Apple's. Words before `--` are SwiftPM's; those after it are the program's for `run`, else SwiftPM's
 * too.
 *
 * @returns SwiftPM's exit code, or 1 with a sentence on stderr
 */
export async function runPackage(command: string, words: readonly string[]): Promise<number> {
  const swift = findSwift();
  if (!swift) return fail(noSwift());
  const flags = command === "package" ? { flags: [] } : await flagsOf(swift); // it manages packages, and builds none
  if ("problem" in flags) return fail(flags.problem);
  const dashes = words.indexOf("--");
  const own = dashes < 0 ? [...words] : words.slice(0, dashes);
  const further = dashes < 0 ? [] : words.slice(dashes + 1);
  if (command === "run" && further.length && !namesProgram(own)) {
    const name = await onlyExecutable(swift);
    if ("problem" in name) return fail(name.problem);
    own.push(name.name);
  }
  if (process.platform === "linux" && command !== "package") repairMoved(scratchOf(own, process.cwd()));
  const child = Bun.spawn([swift.swift, command, ...flags.flags, ...own, ...further], {
    env: {
      ...process.env,
      ...swift.environment,
      ...(swift.sysroot ? { SDKROOT: swift.sysroot } : {}),
      ...moduleEnvironment(),
      ...(process.platform === "linux" ? { SWIFT_EXEC: testingCompiler(swift.swiftc) } : {}),
    },
    stdio: ["inherit", "inherit", "inherit"],
  });
  return child.exited;
}

function fail(problem: string): number {
  console.error(problem);
  return 1;
}

async function flagsOf(swift: SwiftToolchain): Promise<{ flags: string[] } | { problem: string }> {
  if (process.platform !== "linux") return { flags: [] };
  const modules = await buildModules(swift);
  if ("problem" in modules) return modules;
  const imports = importFlags(modules.folder).flatMap((word) => ["-Xswiftc", word]);
  const links = linkFlags(modules.folder).flatMap((word) => ["-Xlinker", word]);
  return { flags: [...imports, ...links, ...swift.buildFlags, ...swift.programFlags] };
}

/** Options of `swift run` whose next word is their value. */
const withValue = new Set([
  ...["-c", "--configuration", "--package-path", "--scratch-path", "--build-path", "--cache-path", "-j", "--jobs"],
  ...["-Xswiftc", "-Xcc", "-Xcxx", "-Xlinker", "--sanitize", "--product", "--arch", "--triple", "--sdk"],
]);

/** SwiftPM's folder: the one that the words give, or `.build` in the package's. */
export function scratchOf(words: readonly string[], cwd: string): string {
  const given = (...names: string[]) =>
    words.flatMap((word, at) => {
      const [name, value] = word.split(/=(.*)/s);
      return names.includes(name!) ? [value ?? words[at + 1] ?? ""] : [];
    })[0];
  const scratch = given("--scratch-path", "--build-path");
  return scratch === undefined ? resolve(cwd, given("--package-path") ?? "", ".build") : resolve(cwd, scratch);
}

/** What SwiftPM downloaded, which is as good elsewhere. */
const downloaded = new Set(["artifacts", "checkouts", "registry", "repositories", "workspace-state.json"]);

/**
 * What SwiftPM builds has absolute paths, and fails where the package was moved ("PCH was compiled with module cache
 * path …"): then it is built again.
 */
export function repairMoved(scratch: string): void {
  const stamp = join(scratch, "orchard-made-for");
  const isMoved = existsSync(stamp) && readFileSync(stamp, "utf8") !== scratch;
  if (isMoved) console.error(`${scratch} was made in another place: it is built again`);
  for (const name of isMoved ? readdirSync(scratch) : [])
    if (!downloaded.has(name)) rmSync(join(scratch, name), { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  writeFileSync(stamp, scratch);
}

/** Whether these words name the executable to run. */
export function namesProgram(words: readonly string[]): boolean {
  return words.some((word, position) => !word.startsWith("-") && !withValue.has(words[position - 1] ?? ""));
}

/** SwiftPM passes arguments to a program that is named only. */
async function onlyExecutable(swift: SwiftToolchain): Promise<{ name: string } | { problem: string }> {
  const { status, output } = await collect(swift, [swift.swift, "package", "dump-package"], process.cwd());
  if (status !== 0) return { problem: output };
  const manifest: unknown = JSON.parse(output.slice(output.indexOf("{")));
  const names = executables(manifest);
  return names.length === 1 && names[0] !== undefined
    ? { name: names[0] }
    : { problem: `expected a package with one executable, got ${names.length}: name the one to run before \`--\`` };
}

type Manifest = {
  readonly targets: readonly { readonly name: string; readonly type: string }[];
  readonly products: readonly { readonly name: string; readonly type: object; readonly targets: readonly string[] }[];
};

/** Executable products, and executable targets that no product names. */
function executables(manifest: unknown): string[] {
  const { targets, products } = manifest as Manifest;
  const named = products.filter((product) => "executable" in product.type);
  const taken = new Set(named.flatMap((product) => product.targets));
  const others = targets.filter((target) => target.type === "executable" && !taken.has(target.name));
  return [...named, ...others].map((each) => each.name);
}
