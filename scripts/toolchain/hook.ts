/** The git hook that runs `check:quick` before a commit. */
import { existsSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";

const hook = `#!/bin/sh
# Written by \`bun run setup --hook\`; delete this file to commit without the check.
if command -v bun > /dev/null; then exec bun run check:quick; fi
exec npx --yes bun@1.4.5 run check:quick
`;

/** Returns where git looks for the hook: worktrees share the folder of the main checkout. */
async function hookPath(root: string): Promise<string> {
  const { output } = await runOrFail("Asking git for its hooks", ["git", "rev-parse", "--git-path", "hooks"], {
    cwd: root,
  });
  return resolve(root, output.trim(), "pre-commit");
}

/** Writes the hook. @throws {Failure} if there is another one */
export async function installHook(root: string = packageRoot): Promise<string> {
  const path = await hookPath(root);
  if (existsSync(path) && (await Bun.file(path).text()) !== hook)
    throw new Failure(`setup --hook: there is another hook, ${path}. Add the line \`bun run check:quick\` to it.`);
  await mkdir(dirname(path), { recursive: true });
  await Bun.write(path, hook);
  await chmod(path, 0o755);
  return path;
}

/** Suggests the hook in a line on a terminal if there is none. */
export function offerHook(): void {
  const isOffered = process.stdout.isTTY && existsSync(join(packageRoot, ".git", "hooks"));
  if (isOffered && !existsSync(join(packageRoot, ".git", "hooks", "pre-commit")))
    console.log("`bun run setup --hook` adds a git hook that checks types and formats before each commit.");
}
