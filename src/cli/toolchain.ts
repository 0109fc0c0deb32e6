/** Finds Swift on this machine, and its build flags. The scripts and the `orchard` command share this. */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cacheFolder } from "../core/paths.ts";

/**
 * Swift 6.0 comes with Xcode 16, the first version whose SDK has the macOS 15 symbols that the dylib uses if available.
 */
export const oldestSwift = "6.0";

export interface SwiftToolchain {
  readonly origin: "PATH" | "cache";
  readonly swift: string;
  readonly swiftc: string;
  readonly version: string;
  /** The C and C++ development files installed with the compiler, on a machine that had none. */
  readonly sysroot: string | undefined;
  /** Environment variables that the toolchain's programs need. */
  readonly environment: Record<string, string>;
  /** Flags of `swift build` for compiling and linking C and C++. */
  readonly buildFlags: readonly string[];
  /** Flags of `swiftc` for the linker and the development files. */
  readonly compilerFlags: readonly string[];
  /** Further flags of `swift build` for programs that load the toolchain's libraries when they run, such as tests. */
  readonly programFlags: readonly string[];
}

/** The folder of the toolchains that `setup` installed. */
export const toolchainsFolder = (): string => join(cacheFolder(), "toolchain");

/** Returns the toolchains that `setup` installed completely (the stamp is written last), newest first. */
export function cachedToolchains(parent: string = toolchainsFolder()): string[] {
  if (!existsSync(parent)) return [];
  const names = readdirSync(parent).filter((name) => existsSync(join(parent, name, "stamp.json")));
  return names
    .sort()
    .reverse()
    .map((name) => join(parent, name));
}

/** Parses the version in `Swift version 6.0.3 (…)` or `Apple Swift version 6.1 (…)`. */
export function parseSwiftVersion(text: string): string | undefined {
  return /Swift version (\d+(?:\.\d+)*)/.exec(text)?.[1];
}

/** Whether a version is at least `least`. */
export function isAtLeast(version: string, least: string): boolean {
  return Bun.semver.order(threeNumbers(version), threeNumbers(least)) >= 0;
}

const threeNumbers = (version: string) => [...version.split("."), "0", "0"].slice(0, 3).join(".");

/**
 * Returns the Swift on PATH, whatever its version; undefined if there is none or it does not start. If it is one that
 * `setup` installed, it needs the flags of that toolchain.
 */
export function swiftOnPath(): SwiftToolchain | undefined {
  const swift = Bun.which("swift");
  const swiftc = Bun.which("swiftc");
  if (!swift || !swiftc) return undefined;
  const brought = broughtFolder(swiftc);
  if (brought !== undefined) return cachedToolchain(brought);
  const version = versionOf(swiftc, {});
  return version === undefined
    ? undefined
    : {
        origin: "PATH",
        swift,
        swiftc,
        version,
        sysroot: undefined,
        environment: {},
        buildFlags: [],
        compilerFlags: [],
        programFlags: [],
      };
}

/** Returns the folder into which `setup` installed this compiler; undefined for any other compiler. */
function broughtFolder(swiftc: string): string | undefined {
  const parts = "/usr/libexec/swift/bin/";
  const path = join(realpathSync(dirname(swiftc)), basename(swiftc));
  const folder = path.slice(0, Math.max(0, path.lastIndexOf(parts)));
  return folder !== "" && existsSync(join(folder, "stamp.json")) ? folder : undefined;
}

/** Returns the toolchain that `setup` installed in `folder`; undefined if it does not start. */
export function cachedToolchain(folder: string): SwiftToolchain | undefined {
  const bin = join(folder, "usr/libexec/swift/bin");
  const environment = {
    PATH: `${bin}:${process.env["PATH"] ?? ""}`,
    SWIFT_EXEC_MANIFEST: join(folder, "swiftc-manifest"),
  };
  const version = versionOf(join(bin, "swiftc"), environment);
  if (version === undefined) return undefined;
  return {
    origin: "cache",
    swift: join(bin, "swift"),
    swiftc: join(bin, "swiftc"),
    version,
    sysroot: existsSync(sysrootOf(folder)) ? sysrootOf(folder) : undefined,
    environment,
    buildFlags: buildFlags(folder),
    compilerFlags: compilerFlags(folder),
    programFlags: programFlags(folder),
  };
}

/** Returns the Swift to build with: the one on PATH if it is new enough, else one that `setup` installed. */
export function findSwift(): SwiftToolchain | undefined {
  const found = swiftOnPath();
  if (found && isAtLeast(found.version, oldestSwift)) return found;
  for (const folder of cachedToolchains()) {
    const cached = cachedToolchain(folder);
    if (cached) return cached;
  }
  return undefined;
}

function versionOf(swiftc: string, environment: Record<string, string>): string | undefined {
  if (!existsSync(swiftc)) return undefined;
  const { stdout, stderr } = Bun.spawnSync([swiftc, "--version"], { env: { ...process.env, ...environment } });
  return parseSwiftVersion(`${stdout}${stderr}`);
}

/** The development files installed with a toolchain, on a machine that had none. */
const sysrootOf = (folder: string): string => join(folder, "sysroot");

/** Returns the flags of `swiftc` for the toolchain's linker and development files. */
export function compilerFlags(folder: string, hasSysroot: boolean = existsSync(sysrootOf(folder))): string[] {
  const sysroot = sysrootOf(folder);
  return ["-use-ld=lld", ...(hasSysroot ? ["-sdk", sysroot, "-Xclang-linker", `--sysroot=${sysroot}`] : [])];
}

/** The flags for the linker and the development files in the form of `swift build`, also for C++. */
function buildFlags(folder: string): string[] {
  const option = `--sysroot=${sysrootOf(folder)}`;
  const forSwift = compilerFlags(folder).flatMap((word) => ["-Xswiftc", word]);
  return existsSync(sysrootOf(folder)) ? [...forSwift, "-Xcc", option, "-Xcxx", option] : forSwift;
}

/**
 * The toolchain's libraries need the glibc they were built for, so a program that loads them uses the unpacked loader.
 * RPATH, unlike RUNPATH, also applies to the dependencies of libraries.
 */
export function programFlags(folder: string): string[] {
  const { triplet, loader } = architecture ?? { triplet: "", loader: "" };
  const libraries = join(folder, "usr/lib", triplet);
  const swiftLibraries = join(folder, "usr/libexec/swift/lib/swift/linux");
  const words = [
    "--allow-shlib-undefined",
    "--disable-new-dtags",
    `--dynamic-linker=${join(libraries, loader)}`,
    "-rpath",
    libraries,
    "-rpath",
    swiftLibraries,
  ];
  return words.flatMap((word) => ["-Xlinker", word]);
}

/** Debian's names for an architecture: its library folder and its loader. */
export interface Architecture {
  readonly triplet: string;
  readonly loader: string;
}

const architectures: Partial<Record<NodeJS.Architecture, Architecture>> = {
  x64: { triplet: "x86_64-linux-gnu", loader: "ld-linux-x86-64.so.2" },
  arm64: { triplet: "aarch64-linux-gnu", loader: "ld-linux-aarch64.so.1" },
};

export const architecture: Architecture | undefined = architectures[process.arch];
