/** The compiler of packages on Linux, which gives their tests what they have on a Mac. */
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

/**
 * Files that import XCTest see Metal and QuartzCore on a Mac: XCTest brings AppKit, and that brings these. Here the
 * modules whose files import XCTest import them too.
 */
const script = (swiftc: string): string => `#!/bin/sh
for word; do
  case $word in
    @*/sources)
      if xargs grep -qs '^ *import XCTest' < "\${word#@}"; then
        for module in Metal QuartzCore; do set -- "$@" -Xfrontend -import-module -Xfrontend $module; done
      fi
      ;;
  esac
done
exec '${swiftc.replaceAll("'", "'\\''")}' "$@"
`;

/** The path of the compiler that SwiftPM is to call in place of `swiftc`, whose libraries it looks for beside it. */
export function testingCompiler(swiftc: string): string {
  const text = script(swiftc);
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
