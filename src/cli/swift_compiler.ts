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
import { appleTool, metalTool } from "./metal_tools.ts";

/** The environment variable that lists the modules that are compiled from empty files, separated by spaces. */
export const emptyModules = "ORCHARD_EMPTY_MODULES";

/** Apple's modules that programs test for, to distinguish Apple's systems from Linux. */
const asked = ["CommonCrypto", "Darwin", "os"];

/** Modules that are named `Orchard…` here. They exist only in modules that import them outside of `#if`. */
const aliased = [...asked, "SwiftUI"];

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** Apple's modules that are always available here. */
const apple = [
  "Accelerate",
  "CoreGraphics",
  "CoreVideo",
  "IOKit",
  "IOSurface",
  "ImageIO",
  "Metal",
  "MetalKit",
  "MetalPerformanceShaders",
  "MetalPerformanceShadersGraph",
  "OSLog",
  "QuartzCore",
  "UniformTypeIdentifiers",
  "simd",
];

/** Modules that a file may import after `#if os(macOS)`. */
const present = [...apple, ...asked, "Dispatch", "Foundation", "Testing", "XCTest"];

/** Sets `name` to the module that a line imports. Returns whether the line is an import. */
const readImport = `
function imports(line) {
  if (!match(line, "^[[:space:]]*(@[[:alnum:]_]+ +)*((internal|package|public) +)?import +")) return 0
  name = substr(line, RLENGTH + 1)
  sub(/^(class|enum|func|let|protocol|struct|typealias|var) +/, "", name)
  match(name, "^[[:alnum:]_]+")
  name = substr(name, 1, RLENGTH)
  return 1
}`;

/**
 * Prints Apple's modules that a file imports without an `#if` around the import. Prints "guarded" if it imports one
 * only after `#if canImport(…)` of a module that is available here, and "mac" if only after `#if os(macOS)`.
 */
const unasked = String.raw`${readImport}
BEGIN {
  known = "^(${[...aliased, ...apple].join("|")})$"
  always = "^(${apple.join("|")})$"
  open = "^[[:space:]]*#if +canImport\\((${apple.join("|")})\\)[[:space:]]*$"
  one = "os\\((macOS|OSX|iOS|tvOS|visionOS|watchOS)\\)"
  systems = "^[[:space:]]*#if +(" one " *\\|\\| *)*" one "[[:space:]]*$"
}
FNR == 1 { depth = closed = macs = 0 }
/^[[:space:]]*#if/ {
  depth++
  is_mac[depth] = $0 ~ systems && /os\((macOS|OSX)\)/
  is_open[depth] = is_mac[depth] || $0 ~ open
  closed += !is_open[depth]
  macs += is_mac[depth]
}
/^[[:space:]]*#else/ && is_open[depth] { is_open[depth] = 0; closed++ }
/^[[:space:]]*#endif/ { closed -= !is_open[depth]; macs -= is_mac[depth]; depth-- }
closed == 0 && imports($0) && name ~ known && (!macs || name ~ always) {
  if (depth) name = macs ? "mac" : "guarded"
  if (!seen[name]++) print name
}`;

/**
 * Succeeds if a module tests for macOS, names no other system, and imports no missing module where this test is true.
 */
const asksForMac = String.raw`${readImport}
BEGIN { known = "^(${present.join("|")})$" }
FNR == 1 { depth = mac = 0 }
/os\((Linux|Android|Windows)\)|canImport\(Glibc\)/ { other = 1 }
/^[[:space:]]*#if/ { depth++ }
/^[[:space:]]*#else/ && mac == depth { mac = 0 }
/^[[:space:]]*#(if|elseif).*[^!]os\((macOS|OSX)\)/ { found = 1; if (!mac) mac = depth }
/^[[:space:]]*#endif/ { if (mac == depth) mac = 0; depth-- }
mac && imports($0) && name !~ known { other = 1 }
END { exit !found || other }`;

/**
 * Copies a file without the attributes of Objective-C, which Linux lacks. With `mac`, `os(macOS)` is replaced by a
 * condition that is true. With `classes`, generic and associated types need not be classes. A path of Apple's `xcrun`
 * becomes that of the stand-in `tool`. With `empty`, the copy has no lines.
 */
const forMac = String.raw`
empty { next }
classes {
  while (match($0, /(associatedtype +[[:alnum:]_]+|<[^<>]*[^<> ]) *: *AnyObject/)) {
    declared = substr($0, RSTART, RLENGTH)
    sub(/ *: *AnyObject$/, "", declared)
    $0 = substr($0, 1, RSTART - 1) declared substr($0, RSTART + RLENGTH)
  }
}
mac && /^[[:space:]]*#(if|elseif)/ { gsub(/os\((macOS|OSX)\)/, "swift(>=5)") }
/@(objc|nonobjc)/ { gsub(/@(objcMembers|nonobjc|objc(\([[:alnum:]_:]*\))?)([[:space:]]+|$)/, "") }
tool && index($0, "${appleTool}") { gsub(/${appleTool.replaceAll("/", "\\/")}/, tool) }
{ print }`;

/** Reads folders, one per line, and prints the deepest folder that contains all of them. Ignores build folders. */
const common = String.raw`
/\/\.build\// { next }
folder == "" { folder = $0 }
{ while (index($0 "/", folder "/") != 1) sub(/\/[^\/]*$/, "", folder) }
END { print folder }`;

/** Reads the words: the list of sources, the modules that they import, and whether the module is left out. */
const readingWords = `names=
list=
empty=
previous=
for word; do
  [ "$previous" = -module-name ] && case " $${emptyModules} " in *" $word "*) empty=yes ;; esac
  previous=$word
  case $word in
    @*/sources)
      list=\${word#@}
      if xargs grep -qs '^ *import XCTest' < "$list"; then
        for module in Metal QuartzCore; do set -- "$@" -Xfrontend -import-module -Xfrontend $module; done
      fi
      names="$names $(xargs awk ${quoted(unasked)} < "$list")"
      ;;
    *.swift) [ -f "$word" ] && names="$names $(awk ${quoted(unasked)} "$word")" ;;
  esac
done
`;

/** Adds the modules that the sources' imports need, and finds out whether they run only on Apple's systems. */
const addingModules = `darwin=
only=
for name in $(printf '%s\\n' $names | sort -u); do
  darwin=
  for module in OrchardDarwin OrchardCoreFoundation CoreGraphics; do
    darwin="$darwin -Xfrontend -import-module -Xfrontend $module"
  done
  case $name in
    guarded) continue ;;
    ${aliased.join("|")}) set -- "$@" -module-alias $name=Orchard$name ;;
  esac
  only=$list
done
`;

/** Finds out why the compiler must read copies of the sources. */
const reasonsToCopy = (tool: string): string => `mac=
objc=
shaders=
[ -n "$list" ] || empty=
[ -z "$empty" ] || only=
if [ -n "$only" ]; then
  xargs awk ${quoted(asksForMac)} < "$list" && mac=yes
  xargs grep -qs -e '@objc' -e '@nonobjc' < "$list" && objc=yes
  if ! grep -q resource_bundle_accessor "$list" && xargs grep -qs 'Bundle\\.module' < "$list"; then
    folder=$(xargs -n 1 dirname < "$list" | awk ${quoted(common)})
    [ -n "$(find "$folder" -name '*.metal' -print -quit)" ] && shaders=$folder
  fi
fi
tool=
[ -n "$list" ] && xargs grep -qs '${appleTool}' < "$list" && tool=${quoted(tool)}
`;

const writingCopies = `copies=\${list%/*}/orchard-mac
write_copies() {
  mkdir -p "$copies"
  xargs printf '%s\\n' < "$list" > "$copies/names"
  count=0
  while IFS= read -r file; do
    awk -v mac="$mac" -v classes="$1" -v tool="$tool" -v empty="$empty" \\
      ${quoted(forMac)} "$file" > "$copies/$count.swift"
    if [ -n "$shaders" ] && [ $count = 0 ]; then
      printf '\\nimport Foundation\\nextension Foundation.Bundle { static let module = Bundle(path: "%s")! }\\n' \\
        "$shaders" >> "$copies/$count.swift"
    fi
    [ $count = 0 ] || printf ,
    printf '{"type":"file","name":"%s","external-contents":"%s"}' "$file" "$copies/$count.swift"
    count=$((count + 1))
  done < "$copies/names" > "$copies/roots"
  printf '{"version":0,"use-external-names":false,"roots":[%s]}' "$(cat "$copies/roots")" > "$copies/overlay.yaml"
}
`;

const compiling = (swiftc: string): string => `overlaid=
if [ -n "$mac$objc$shaders$tool$empty" ]; then
  write_copies ''
  overlaid=yes
  set -- "$@" -vfsoverlay "$copies/overlay.yaml"
fi
if [ -n "$only" ] && xargs grep -qs -e '<.*: *AnyObject' -e 'associatedtype .*: *AnyObject' < "$list"; then
  printed=$(${quoted(swiftc)} "$@" $darwin 2>&1)
  status=$?
  again=
  case $status$printed in
    0*) ;;
    *"be a class type"*|*"conform to 'AnyObject'"*|*"not conform to protocol"*) again=yes ;;
  esac
  if [ -z "$again" ]; then
    [ -z "$printed" ] || printf '%s\\n' "$printed"
    exit $status
  fi
  write_copies yes
  [ -n "$overlaid" ] || set -- "$@" -vfsoverlay "$copies/overlay.yaml"
fi
exec ${quoted(swiftc)} "$@" $darwin
`;

/**
 * On a Mac, files that import XCTest also see Metal and QuartzCore, because XCTest imports AppKit, which imports both.
 * Here, modules whose files import XCTest import them too.
 *
 * Programs import Darwin and os either because they run on Apple's systems only, or after `#if canImport(Darwin)`, with
 * other code for Linux. So Darwin and os exist only in modules that import them outside of `#if`, as aliases such as
 * `OrchardDarwin`. The same holds for SwiftUI, of which only colors exist. Modules that import any of Apple's modules
 * see the names of `OrchardDarwin` and `CoreGraphics` too, as on a Mac, where Foundation imports Darwin, Core
 * Foundation and Core Graphics.
 *
 * Modules of a package that import one of Apple's modules outside of `#if`, or after `#if os(macOS)`, run on Apple's
 * systems only. If they test `#if os(macOS)` and name no other system, it is true: the compiler reads copies of their
 * files, through an overlay, so that messages name the original files. The copies also lack the attributes of
 * Objective-C.
 *
 * On a Mac, `any MTLBuffer` is a class type, since MTLBuffer is an Objective-C protocol. On Linux it is not, so modules
 * that pass it for a type parameter with the constraint `AnyObject` do not compile. If the compiler says so, it runs
 * again on copies without these constraints.
 *
 * Xcode compiles .metal files that the manifest does not declare, and provides `Bundle.module` for them. SwiftPM does
 * not, so the copy of such a module's first file adds `Bundle.module`: the folder of the module's files.
 *
 * Modules that run `xcrun` are copied too, and run the stand-in for it (metal_tools.ts).
 *
 * SwiftPM links all tests of a package into one program. Modules that `swift test` leaves out are compiled from empty
 * copies, so that the other tests run.
 */
const script = (swiftc: string, tool: string): string =>
  `#!/bin/sh\n${readingWords}${addingModules}${reasonsToCopy(tool)}${writingCopies}${compiling(swiftc)}`;

/**
 * SwiftPM compiles build plugins with the compiler for manifests, without the flags of `swift build`. This wrapper adds
 * the flags that plugins need to import Apple's modules. `os` becomes `Orchardos`, the module's name on Linux. Files
 * that run `xcrun` are replaced by copies that run the stand-in for it.
 */
const pluginScript = (compiler: string, flags: readonly string[], tool: string): string => `#!/bin/sh
for word; do
  shift
  case $word in
    *.swift)
      if grep -qs '${appleTool}' "$word"; then
        copy=\${TMPDIR:-/tmp}/orchard-plugin-$(cksum < "$word" | tr ' ' -)/\${word##*/}
        mkdir -p "\${copy%/*}"
        sed 's|${appleTool}|'${quoted(tool)}'|g' "$word" > "$copy"
        word=$copy
      fi
      ;;
  esac
  set -- "$@" "$word"
done
for word; do
  case $word in
    -lPackagePlugin) set -- "$@" -module-alias os=Orchardos ${flags.map(quoted).join(" ")} ;;
  esac
done
exec ${quoted(compiler)} "$@"
`;

/**
 * Returns the path of the compiler that SwiftPM calls instead of `swiftc`. SwiftPM looks for libraries next to it, and
 * for `swift-frontend`, which tells it whether tests can link an executable, whose `main` is renamed for them.
 */
export const testingCompiler = (swiftc: string): string => wrapper(script(swiftc, metalTool()), swiftc);

/** Returns the path of the compiler that SwiftPM calls for manifests and plugins instead of `compiler`. */
export const pluginCompiler = (swiftc: string, compiler: string, flags: readonly string[]): string =>
  wrapper(pluginScript(compiler, flags, metalTool()), swiftc);

function wrapper(text: string, swiftc: string): string {
  const folder = join(cacheFolder(), "swift", "compilers", Bun.hash(`${text} with swift-frontend`).toString(16));
  const path = join(folder, "bin", "swiftc");
  if (existsSync(path)) return path;
  const draft = `${folder}.${process.pid}`;
  mkdirSync(join(draft, "bin"), { recursive: true });
  writeFileSync(join(draft, "bin", "swiftc"), text);
  chmodSync(join(draft, "bin", "swiftc"), 0o755);
  const tools = dirname(realpathSync(swiftc));
  symlinkSync(join(dirname(tools), "lib"), join(draft, "lib"));
  symlinkSync(join(tools, "swift-frontend"), join(draft, "bin", "swift-frontend"));
  if (existsSync(folder)) rmSync(draft, { recursive: true });
  else renameSync(draft, folder);
  return path;
}
