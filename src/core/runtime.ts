/**
 * Checks the runtime. This file must parse in every engine that might load it, so that the error appears before
 * anything else is parsed.
 */

/** The oldest Bun version that runs the package, as in `engines` of package.json. */
export const OLDEST_BUN = "1.4.5";

/** Returns the problem with a runtime of these versions in one sentence; undefined if there is none. */
export function missingRuntime(versions: Readonly<Record<string, string | undefined>>): string | undefined {
  const { bun, deno, node } = versions;
  if (bun !== undefined && !isOlder(bun, OLDEST_BUN)) return undefined;
  const other = deno ? `Deno ${deno}` : node ? `Node.js ${node}` : "another engine";
  const got = bun === undefined ? other : `Bun ${bun}; \`bun upgrade\` installs the newest`;
  return `orchard-metal requires Bun ${OLDEST_BUN} or newer (https://bun.sh), got ${got}`;
}

/**
 * Compares the three numbers of versions. Suffixes, as in `1.4.6-canary.1`, are ignored. A regular expression would be
 * compiled at each start, which takes longer than the rest of the check.
 */
function isOlder(version: string, least: string): boolean {
  const [actual, others] = [version.split("."), least.split(".")];
  for (let place = 0; place < 3; place++) {
    const [one, other] = [Number.parseInt(actual[place], 10), Number.parseInt(others[place], 10)];
    if (one !== other) return !(one > other);
  }
  return false;
}

/** @throws {Error} in an engine that cannot run the package. */
export function checkRuntime(): void {
  const problem = missingRuntime(process.versions);
  if (problem !== undefined) throw new Error(problem);
}
