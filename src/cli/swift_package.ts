/** `orchard swift build`, `test`, `run` and `package`: runs SwiftPM in any package, with the toolchain and modules. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { metalTool } from "./metal_tools.ts";
import { emptyModules, pluginCompiler, testingCompiler } from "./swift_compiler.ts";
import { buildModules, collect, headerFlags, importFlags, linkFlags, moduleEnvironment } from "./swift_module.ts";
import { noSwift } from "./swift_program.ts";
import { chooseTargets, mayLeaveOut, roots, type Target, withDependencies } from "./swift_targets.ts";
import { findSwift, type SwiftToolchain } from "./toolchain.ts";

/** The supported SwiftPM commands. */
export const packageCommands: readonly string[] = ["build", "test", "run", "package"];

/**
 * Runs SwiftPM in the current folder, with the package's manifest unchanged. On Linux every target may import the
 * modules that replace Apple's. Arguments before `--` go to SwiftPM; those after it go to the program for `run`, else
 * to SwiftPM too.
 *
 * @returns SwiftPM's exit code, or 1 with a message on stderr
 */
export async function runPackage(command: string, words: readonly string[]): Promise<number> {
  const swift = findSwift();
  if (!swift) return fail(noSwift());
  const older = olderManifest(swift.version, process.cwd(), words);
  if (!older) return callPackage(swift, command, words);
  console.error(
    `swift: ${older.original} requires Swift ${older.required} or newer (got ${swift.version}); the package is built ` +
      "as one of the installed version, so newer parts of the language do not compile",
  );
  return withFile(older.path, older.text, () => callPackage(swift, command, words));
}

async function callPackage(swift: SwiftToolchain, command: string, words: readonly string[]): Promise<number> {
  const flags = command === "package" ? { flags: [] } : await flagsOf(swift); // this command builds nothing
  if ("problem" in flags) return fail(flags.problem);
  const dashes = words.indexOf("--");
  const before = dashes < 0 ? [...words] : words.slice(0, dashes);
  const further = dashes < 0 ? [] : words.slice(dashes + 1);
  if (command === "run" && further.length && !namesProgram(before)) {
    const name = await onlyExecutable(swift);
    if ("problem" in name) return fail(name.problem);
    before.push(name.name);
  }
  const plan = process.platform === "linux" ? await planOf(swift, command, before) : whole(command, before);
  if ("problem" in plan) return fail(plan.problem);
  if (process.platform === "linux" && command !== "package") repairMoved(scratchOf(before, process.cwd()));
  for (const [at, [verb = command, ...words]] of plan.calls.entries()) {
    const last = at === plan.calls.length - 1;
    const child = Bun.spawn([swift.swift, verb, ...flags.flags, ...words, ...(last ? further : [])], {
      env: {
        ...process.env,
        ...swift.environment,
        ...(swift.sysroot ? { SDKROOT: swift.sysroot } : {}),
        ...moduleEnvironment(),
        ...("compilers" in flags ? flags.compilers : {}),
        [emptyModules]: plan.empty.join(" "),
      },
      stdio: ["inherit", "inherit", "inherit"],
    });
    const status = await child.exited;
    if (status !== 0 || last) return status;
  }
  return 0;
}

/**
 * The calls of SwiftPM for a command: one, unless targets of the package are left out. The modules in `empty` are
 * compiled without their sources.
 */
type Plan = { readonly calls: string[][]; readonly empty: readonly string[] } | { readonly problem: string };

const whole = (command: string, words: readonly string[]): Plan => ({ calls: [[command, ...words]], empty: [] });

/**
 * Plans `build` and `test` of a package with targets that import frameworks of Apple for screens and media, such as
 * SwiftUI. These targets are left out; stderr has a sentence about each.
 */
async function planOf(swift: SwiftToolchain, command: string, words: readonly string[]): Promise<Plan> {
  const folder = resolve(process.cwd(), optionValue(words, "--package-path") ?? "");
  const isChosen = words.some((word) => /^--(target|product|skip-build)\b/.test(word));
  if (isChosen || !["build", "test"].includes(command) || !mayLeaveOut(folder)) return whole(command, words);
  const described = await collect(swift, [swift.swift, "package", "describe", "--type", "json"], folder);
  if (described.status !== 0) return { problem: described.output };
  const text = described.printed.slice(described.printed.search(/^\{/m));
  const { name, targets } = JSON.parse(text) as { readonly name: string; readonly targets: readonly Target[] };
  const choice = chooseTargets(targets, folder);
  if (choice.reasons.size === 0) return whole(command, words);
  for (const [target, reason] of choice.reasons)
    console.error(`swift: target ${target} is left out, since it ${reason} (not available on Linux)`);
  if (command === "test") {
    const tests = choice.kept.filter(({ type }) => type === "test");
    if (tests.length === 0) return { problem: `swift: no tests of ${name} can be built on Linux` };
    const needed = withDependencies(tests, targets);
    const build = ["build", ...sharedOptions(words), "--product", `${name}PackageTests`];
    const empty = targets.map((target) => target.name).filter((target) => !needed.has(target));
    return { calls: [build, ["test", ...words, "--skip-build"]], empty };
  }
  const shared = words.filter((word) => word !== "--build-tests");
  const names = roots(choice);
  if (names.length === 0) return { problem: `swift: no target of ${name} can be built on Linux` };
  return { calls: names.map((target) => ["build", ...shared, "--target", target]), empty: [] };
}

/** Options of `swift test` that `swift build` has too, each with its value. */
const buildOptions = new Set("-c --configuration --package-path --scratch-path --build-path -j --jobs".split(" "));

const sharedOptions = (words: readonly string[]): string[] =>
  words.filter((word, at) => buildOptions.has(word.split("=")[0] ?? "") || buildOptions.has(words[at - 1] ?? ""));

/** A manifest for an older Swift: its path and text, the manifest that it replaces, and what that one requires. */
export type OlderManifest = {
  readonly path: string;
  readonly text: string;
  readonly original: string;
  readonly required: string;
};

/** The first line of a manifest, with the version of Swift that it requires. */
const toolsVersion = /^\/\/\s*swift-tools-version\s*:\s*(\d+(?:\.\d+)*)/i;

/** The second line of manifests that this file writes. */
const made = "// Written by `orchard swift` while it builds the package";

/**
 * Returns a manifest for the Swift of this version, if the package's manifest requires a newer one, else undefined.
 * SwiftPM prefers a manifest named `Package@swift-6.0.swift` with Swift 6.0. Packages that have manifests for several
 * versions are left to SwiftPM. Names of later systems, such as `.v26`, become numbers, which all versions know.
 */
export function olderManifest(version: string, cwd: string, words: readonly string[] = []): OlderManifest | undefined {
  const folder = resolve(cwd, optionValue(words, "--package-path") ?? "");
  const original = join(folder, "Package.swift");
  if (!existsSync(original)) return undefined;
  const source = readFileSync(original, "utf8");
  const required = toolsVersion.exec(source)?.[1];
  if (required === undefined || Bun.semver.order(full(version), full(required)) >= 0) return undefined;
  const installed = version.split(".").slice(0, 2).join(".");
  const path = join(folder, `Package@swift-${installed}.swift`);
  for (const name of readdirSync(folder))
    if (name.startsWith("Package@swift-") && !readFileSync(join(folder, name), "utf8").includes(made)) return undefined;
  const text = source
    .replace(toolsVersion, `// swift-tools-version:${installed}`)
    .replace("\n", `\n${made}\n`)
    .replace(/\(\s*\.v(2[6-9])\s*\)/g, '("$1.0")');
  return { path, text, original, required };
}

/** Runs `body` while a file exists; removes the file at the end, and at an interrupt. */
async function withFile(path: string, text: string, body: () => Promise<number>): Promise<number> {
  const interrupted = () => {
    rmSync(path, { force: true });
    process.exit(130);
  };
  writeFileSync(path, text);
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
  try {
    return await body();
  } finally {
    process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
    rmSync(path, { force: true });
  }
}

/** A version with three numbers: 6.2 is 6.2.0. */
const full = (version: string): string => [...version.split("."), "0", "0"].slice(0, 3).join(".");

function fail(problem: string): number {
  console.error(problem);
  return 1;
}

type Flags = { readonly flags: string[]; readonly compilers?: Record<string, string> };

async function flagsOf(swift: SwiftToolchain): Promise<Flags | { readonly problem: string }> {
  if (process.platform !== "linux") return { flags: [] };
  const modules = await buildModules(swift);
  if ("problem" in modules) return modules;
  const [imports, links] = [importFlags(modules.folder), linkFlags(modules.folder)];
  const forSwift = [...imports.flatMap((word) => ["-Xswiftc", word]), ...links.flatMap((word) => ["-Xlinker", word])];
  const forManifests = swift.environment["SWIFT_EXEC_MANIFEST"] ?? swift.swiftc;
  return {
    flags: [
      ...forSwift,
      ...headerFlags(swift).flatMap((word) => ["-Xcc", word]),
      ...swift.buildFlags,
      ...swift.programFlags,
    ],
    compilers: {
      PATH: [dirname(metalTool()), swift.environment["PATH"] ?? process.env["PATH"] ?? ""].join(delimiter),
      SWIFT_EXEC: testingCompiler(swift.swiftc),
      SWIFT_EXEC_MANIFEST: pluginCompiler(swift.swiftc, forManifests, [...imports, ...links]),
    },
  };
}

/** Options of `swift run` that have a value as the next argument. */
const withValue = new Set([
  "-c",
  "--configuration",
  "--package-path",
  "--scratch-path",
  "--build-path",
  "--cache-path",
  "-j",
  "--jobs",
  "-Xswiftc",
  "-Xcc",
  "-Xcxx",
  "-Xlinker",
  "--sanitize",
  "--product",
  "--arch",
  "--triple",
  "--sdk",
]);

/** Returns SwiftPM's scratch folder: the one that the arguments give, or `.build` in the package's folder. */
export function scratchOf(words: readonly string[], cwd: string): string {
  const scratch = optionValue(words, "--scratch-path", "--build-path");
  return scratch === undefined
    ? resolve(cwd, optionValue(words, "--package-path") ?? "", ".build")
    : resolve(cwd, scratch);
}

/** Returns the value of the first of these options, given as `--name value` or `--name=value`. */
function optionValue(words: readonly string[], ...names: string[]): string | undefined {
  return words.flatMap((word, at) => {
    const [name, value] = word.split(/=(.*)/s);
    return names.includes(name) ? [value ?? words[at + 1] ?? ""] : [];
  })[0];
}

/** SwiftPM's downloads, which contain no absolute paths. */
const downloaded = new Set(["artifacts", "checkouts", "registry", "repositories", "workspace-state.json"]);

/**
 * Removes build products if the package was moved. They contain absolute paths, and builds fail ("PCH was compiled with
 * module cache path …").
 */
export function repairMoved(scratch: string): void {
  const stamp = join(scratch, "orchard-made-for");
  const isMoved = existsSync(stamp) && readFileSync(stamp, "utf8") !== scratch;
  if (isMoved) console.error(`${scratch} was built at another path; rebuilding`);
  for (const name of isMoved ? readdirSync(scratch) : [])
    if (!downloaded.has(name)) rmSync(join(scratch, name), { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  writeFileSync(stamp, scratch);
}

/** Whether the arguments name the executable to run. */
export function namesProgram(words: readonly string[]): boolean {
  return words.some((word, position) => !word.startsWith("-") && !withValue.has(words[position - 1] ?? ""));
}

/** Returns the name of the package's executable: SwiftPM passes arguments only to a program that is named. */
async function onlyExecutable(swift: SwiftToolchain): Promise<{ name: string } | { problem: string }> {
  const { status, printed, output } = await collect(swift, [swift.swift, "package", "dump-package"], process.cwd());
  if (status !== 0) return { problem: output };
  const manifest: unknown = JSON.parse(printed.slice(printed.indexOf("{")));
  const names = executables(manifest);
  return names.length === 1 && names[0] !== undefined
    ? { name: names[0] }
    : { problem: `expected a package with one executable, got ${names.length}; name the one to run before \`--\`` };
}

type Manifest = {
  readonly targets: readonly { readonly name: string; readonly type: string }[];
  readonly products: readonly { readonly name: string; readonly type: object; readonly targets: readonly string[] }[];
};

/** Returns the executable products, and the executable targets without a product. */
function executables(manifest: unknown): string[] {
  const { targets, products } = manifest as Manifest;
  const named = products.filter((product) => "executable" in product.type);
  const taken = new Set(named.flatMap((product) => product.targets));
  const others = targets.filter((target) => target.type === "executable" && !taken.has(target.name));
  return [...named, ...others].map((each) => each.name);
}
