import { packageRoot } from "../../src/core/paths.ts";

/** Returns the package's files that match one of the globs, sorted, without installed and built files. */
export function filesOf(globs: readonly string[]): string[] {
  const found = globs.flatMap((glob) => [...new Bun.Glob(glob).scanSync({ cwd: packageRoot, dot: false })]);
  return [...new Set(found)].filter((file) => !/(^|\/)(node_modules|build|\.build)\//.test(file)).sort();
}
