/** Stages the package once for each state of the sources: staging takes 40 seconds of processor time. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { contentKey } from "../content_cache.ts";
import { stageMain } from "./stage.ts";

/** Everything that staging reads. */
const inputs = ["{src,docs,kernels,swift,scripts}/**/*", "*.{json,md,lock}", "LICENSE"];

/**
 * Writes what `stageMain` writes, from a copy if an earlier call had the same sources. For tests and checks; a release
 * stages anew.
 *
 * @param folder is recreated
 */
export async function stageMainOnce(folder: string): Promise<void> {
  const parent = join(packageRoot, "build", "staged");
  const kept = join(parent, keyOfSources());
  if (!existsSync(kept)) {
    const unfinished = join(parent, `unfinished-${process.pid}`);
    await stageMain(unfinished);
    for (const old of readdirSync(parent))
      if (!old.startsWith("unfinished-")) rmSync(join(parent, old), { recursive: true });
    if (existsSync(kept)) rmSync(unfinished, { recursive: true });
    else renameSync(unfinished, kept); // another process sees the whole folder or none
  }
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await cp(kept, folder, { recursive: true });
}

function keyOfSources(): string {
  const files = inputs.flatMap((glob) => [...new Bun.Glob(glob).scanSync({ cwd: packageRoot })]);
  const texts = files.sort().flatMap((file) => [file, readFileSync(join(packageRoot, file))]);
  return contentKey([Bun.version_with_sha, process.env["GITHUB_REPOSITORY"] ?? "", ...texts]).slice(0, 16);
}
