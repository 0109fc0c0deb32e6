/** A wrapper of `swiftc` for packages on Linux: gives their tests the imports that they have on a Mac. */
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
 * On a Mac, files that import XCTest also see Metal and QuartzCore: XCTest imports AppKit, which imports these. Here,
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

/** Returns the path of the compiler that SwiftPM calls instead of `swiftc`. SwiftPM looks for libraries next to it. */
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
