/**
 * Where Swift is on this machine, and the flags with which it builds. The scripts and the `orchard` command share this.
 */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cacheFolder } from "../core/paths.ts";

/**
 * Swift 6.0 comes with Xcode 16, the first one that knows the names of macOS 15 which the dylib uses where they are
 * there.
 */
export const oldestSwift = "6.0";

export interface SwiftToolchain {
  readonly origin: "PATH" | "cache";
  readonly swift: string;
  readonly swiftc: string;
  readonly version: string;
  /** C and C++ development files that came with it, on a machine that had none. */
  readonly sysroot: string | undefined;
  /** What its programs need in their environment. */
  readonly environment: Record<string, string>;
  /** For `swift build`: how C and C++ are compiled and linked. */
  readonly buildFlags: readonly string[];
  /** For `swiftc`: the same. */
  readonly compilerFlags: readonly string[];
  /** For `swift build`, further: programs that must find the toolchain's own libraries when they run, such as tests. */
  readonly programFlags: readonly string[];
}

/** The folder that holds toolchains which `setup` brought. */
export const toolchainsFolder = (): string => join(cacheFolder(), "toolchain");

/** Toolchains which `setup` brought in whole (the stamp comes last), the newest first. */
export function cachedToolchains(parent: string = toolchainsFolder()): string[] {
  if (!existsSync(parent)) return [];
  const names = readdirSync(parent).filter((name) => existsSync(join(parent, name, "stamp.json")));
  return names
    .sort()
    .reverse()
    .map((name) => join(parent, name));
}

/** `Swift version 6.0.3 (…)` or `Apple Swift version 6.1 (…)`: the number. */
export function parseSwiftVersion(text: string): string | undefined {
  return /Swift version (\d+(?:\.\d+)*)/.exec(text)?.[1];
}

/** Whether a version is at least another, number by number. */
export function isAtLeast(version: string, least: string): boolean {
  return Bun.semver.order(threeNumbers(version), threeNumbers(least)) >= 0;
}

const threeNumbers = (version: string) => [...version.split("."), "0", "0"].slice(0, 3).join(".");

/**
 * The Swift on PATH, whatever its age; undefined where there is none, or where it does not start. One that `setup`
 * brought needs its flags there too.
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

/** The folder into which `setup` brought this compiler; undefined where it is another. */
function broughtFolder(swiftc: string): string | undefined {
  const parts = "/usr/libexec/swift/bin/";
  const path = join(realpathSync(dirname(swiftc)), basename(swiftc));
  const folder = path.slice(0, Math.max(0, path.lastIndexOf(parts)));
  return folder !== "" && existsSync(join(folder, "stamp.json")) ? folder : undefined;
}

/** A toolchain which `setup` brought into `folder`. */
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

/** The Swift to build with: PATH's where it is new enough, else the one that `setup` brought. */
export function findSwift(): SwiftToolchain | undefined {
  const own = swiftOnPath();
  if (own && isAtLeast(own.version, oldestSwift)) return own;
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

/** The development files that came with a toolchain, on a machine that had none. */
const sysrootOf = (folder: string): string => join(folder, "sysroot");

/** For `swiftc`: the toolchain's own linker, and its development files. */
export function compilerFlags(folder: string, hasSysroot: boolean = existsSync(sysrootOf(folder))): string[] {
  const sysroot = sysrootOf(folder);
  return ["-use-ld=lld", ...(hasSysroot ? ["-sdk", sysroot, "-Xclang-linker", `--sysroot=${sysroot}`] : [])];
}

/** For `swift build`: the same, and for C++. */
function buildFlags(folder: string): string[] {
  const option = `--sysroot=${sysrootOf(folder)}`;
  const forSwift = compilerFlags(folder).flatMap((word) => ["-Xswiftc", word]);
  return existsSync(sysrootOf(folder)) ? [...forSwift, "-Xcc", option, "-Xcxx", option] : forSwift;
}

/**
 * The toolchain's libraries want its own glibc, so a program that loads them starts with the unpacked loader. RPATH,
 * not RUNPATH: it also serves the libraries of libraries.
 */
export function programFlags(folder: string): string[] {
  const { triplet, loader } = architecture ?? { triplet: "", loader: "" };
  const libraries = join(folder, "usr/lib", triplet);
  const swiftLibraries = join(folder, "usr/libexec/swift/lib/swift/linux");
  const words = [
    "--allow-shlib-undefined",
    "--disable-new-dtags",
    `--dynamic-linker=${join(libraries, loader)}`,
    ...["-rpath", libraries, "-rpath", swiftLibraries],
  ];
  return words.flatMap((word) => ["-Xlinker", word]);
}

/** Debian's names for an architecture: the folder of its libraries, and its loader. */
export interface Architecture {
  readonly triplet: string;
  readonly loader: string;
}

const architectures: Partial<Record<NodeJS.Architecture, Architecture>> = {
  x64: { triplet: "x86_64-linux-gnu", loader: "ld-linux-x86-64.so.2" },
  arm64: { triplet: "aarch64-linux-gnu", loader: "ld-linux-aarch64.so.1" },
};

export const architecture: Architecture | undefined = architectures[process.arch];
