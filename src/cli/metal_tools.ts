/**
 * A stand-in for Apple's `xcrun` with the tools `metal`, `metal-ar` and `metallib`, which build plugins of packages
 * run. It compiles nothing: each file that it writes lists sources with their options, and the software device compiles
 * them when the library is loaded (swift/Sources/Metal/SourceList.swift).
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder } from "../core/paths.ts";

/** Where programs and plugins look for the tool. */
export const appleTool = "/usr/bin/xcrun";

const script = String.raw`#!/bin/sh
# Usage: xcrun [options] metal|metal-ar|metallib arguments
# A line of the output: the path of a source, and the options -I, -D and -std, with tabs between.
first='Orchard: sources of a Metal library'
tool=$(basename "$0")
while [ "$tool" = xcrun ] && [ $# -gt 0 ]; do
  case $1 in
    -sdk|--sdk|-toolchain|--toolchain) shift 2 ;;
    -f|-find|--find) echo "$(dirname "$0")/$2"; exit ;;
    -*) shift ;;
    *) tool=$1; shift ;;
  esac
done
out=
flags=
object=
work=$(mktemp) || exit 1
trap 'rm -f "$work"' EXIT
absolute() {
  case $1 in /*) printf %s "$1" ;; *) printf %s "$PWD/$1" ;; esac
}
flag() {
  flags="$flags	$1"
}
take() { # an input
  [ -f "$1" ] || { echo "$tool: error: no such file or directory: '$1'" >&2; exit 1; }
  case $1 in
    *.metal) printf '%s\n' "$(absolute "$1")" >> "$work" ;;
    *) tail -n +2 "$1" >> "$work" ;;
  esac
}
case $tool in
  metal-ar)
    shift
    out=$1
    shift
    for input; do take "$input"; done
    ;;
  metal|metallib)
    while [ $# -gt 0 ]; do
      case $1 in
        -o) out=$2; shift ;;
        -c) object=yes ;;
        -I) flag "-I$(absolute "$2")"; shift ;;
        -I*) flag "-I$(absolute "${"$"}{1#-I}")" ;;
        -D) flag "-D$2"; shift ;;
        -D*|-std=*) flag "$1" ;;
        -MF) : > "$2"; shift ;;
        -target|-x|-arch|-isysroot|-MT|-MQ|-include|-framework) shift ;;
        -*) ;;
        *) take "$1"; input=$1 ;;
      esac
      shift
    done
    if [ -z "$out" ] && [ -n "$object" ]; then out=$(basename "$input" .metal).air; fi
    ;;
  *)
    echo "xcrun: $tool is not available on Linux: there are metal, metal-ar and metallib" >&2
    exit 72
    ;;
esac
{
  echo "$first"
  while IFS= read -r line; do
    case $line in *.metal) printf '%s%s\n' "$line" "$flags" ;; *) printf '%s\n' "$line" ;; esac
  done < "$work"
} > "${"$"}{out:-default.metallib}"
`;

/** Returns the path of the stand-in. Next to it are links to it with the names of its tools. */
export function metalTool(): string {
  const folder = join(cacheFolder(), "swift", "tools", Bun.hash(script).toString(16));
  const path = join(folder, "xcrun");
  if (existsSync(path)) return path;
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  writeFileSync(join(draft, "xcrun"), script);
  chmodSync(join(draft, "xcrun"), 0o755);
  for (const name of ["metal", "metal-ar", "metallib"]) symlinkSync("xcrun", join(draft, name));
  if (existsSync(folder)) rmSync(draft, { recursive: true });
  else renameSync(draft, folder);
  return path;
}
