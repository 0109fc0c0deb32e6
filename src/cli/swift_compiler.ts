/** Wrappers of `swiftc` on Linux, which give modules the imports that they have on a Mac. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { cacheFolder } from "../core/paths.ts";

/** Modules of Apple that programs look for to tell Apple's systems from Linux. */
const asked = ["Darwin", "CommonCrypto"];

/** Modules of Apple that are always here. */
const apple = ["Accelerate", "CoreVideo", "Metal", "MetalKit", "OSLog", "QuartzCore", "os", "simd"];

/** Prints Apple's modules that a file imports without an `#if` around the import. */
const unasked = `
BEGIN { names = "(${[...asked, ...apple].join("|")})([.[:space:]]|$)" }
FNR == 1 { depth = 0 }
/^[[:space:]]*#if/ { depth++ }
/^[[:space:]]*#endif/ { depth-- }
depth == 0 && match($0, "^[[:space:]]*(@[[:alnum:]_]+ +)*import +([a-z]+ +)?" names) {
  name = substr($0, RSTART, RLENGTH)
  sub(/.*import +([a-z]+ +)?/, "", name)
  sub(/[.[:space:]]$/, "", name)
  if (!seen[name]++) print name
}`;

/**
 * On a Mac, files that import XCTest also see Metal and QuartzCore: XCTest imports AppKit, which imports these. Here,
 * modules whose files import XCTest import them too.
 *
 * Programs import Darwin either because they run on Apple's systems only, or after `#if canImport(Darwin)`, with other
 * code for Linux. So Darwin exists only in modules that import it outside of `#if`, which get `OrchardDarwin` as its
 * meaning. Modules that import any of Apple's modules outside of `#if` see its names too, as on a Mac, where Foundation
 * imports Darwin.
 */
const script = (swiftc: string): string => `#!/bin/sh
names=
for word; do
  case $word in
    @*/sources)
      if xargs grep -qs '^ *import XCTest' < "\${word#@}"; then
        for module in Metal QuartzCore; do set -- "$@" -Xfrontend -import-module -Xfrontend $module; done
      fi
      names="$names $(xargs awk ${quoted(unasked)} < "\${word#@}")"
      ;;
    *.swift) [ -f "$word" ] && names="$names $(awk ${quoted(unasked)} "$word")" ;;
  esac
done
darwin=
for name in $(printf '%s\\n' $names | sort -u); do
  darwin="-Xfrontend -import-module -Xfrontend OrchardDarwin"
  case $name in
    ${asked.join("|")}) set -- "$@" -module-alias $name=Orchard$name ;;
  esac
done
exec ${quoted(swiftc)} "$@" $darwin
`;

/**
 * SwiftPM compiles build plugins with the compiler of manifests, and without the flags of `swift build`. Here they get
 * the flags by which they may import Apple's modules.
 */
const pluginScript = (compiler: string, flags: readonly string[]): string => `#!/bin/sh
for word; do
  case $word in
    -lPackagePlugin) set -- "$@" ${flags.map(quoted).join(" ")} ;;
  esac
done
exec ${quoted(compiler)} "$@"
`;

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** Returns the path of the compiler that SwiftPM calls instead of `swiftc`. SwiftPM looks for libraries next to it. */
export const testingCompiler = (swiftc: string): string => wrapper(script(swiftc), swiftc);

/** Returns the path of the compiler that SwiftPM calls for manifests and plugins instead of `compiler`. */
export const pluginCompiler = (swiftc: string, compiler: string, flags: readonly string[]): string =>
  wrapper(pluginScript(compiler, flags), swiftc);

function wrapper(text: string, swiftc: string): string {
  const folder = join(cacheFolder(), "swift", "compilers", Bun.hash(text).toString(16));
  const path = join(folder, "bin", "swiftc");
  if (existsSync(path)) return path;
  const draft = `${folder}.${process.pid}`;
  mkdirSync(join(draft, "bin"), { recursive: true });
  writeFileSync(join(draft, "bin", "swiftc"), text);
  chmodSync(join(draft, "bin", "swiftc"), 0o755);
  symlinkSync(join(dirname(dirname(realpathSync(swiftc))), "lib"), join(draft, "lib"));
  if (existsSync(folder)) rmSync(draft, { recursive: true });
  else renameSync(draft, folder);
  return path;
}
