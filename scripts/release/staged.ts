/** Stages the package once on a machine for each state of the sources: that takes 40 seconds of processor time. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { run, runOrFail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { ContentCache, contentKey } from "../content_cache.ts";
import { stageMain } from "./stage.ts";

/** Everything that staging reads. */
const inputs = ["{src,docs,kernels,swift,scripts}/**/*", "*.{json,md,lock}", "LICENSE"];

/** The bytes of archives for other clones, of 30 MB each. */
const MOST_BYTES = 200e6;

/** What tests replace. */
export interface Staging {
  /** Writes the package to a folder. */
  readonly stage?: (folder: string) => Promise<void>;
  /** The folder of the last package. Default: in this clone */
  readonly parent?: string;
  /** The folder of caches. Default: the user's */
  readonly caches?: string;
}

/**
 * Writes what `stageMain` writes, from a copy if an earlier call had the same sources. For tests and checks; a release
 * stages anew.
 *
 * @param folder is recreated
 */
export async function stageMainOnce(
  folder: string,
  { stage = stageMain, parent = join(packageRoot, "build", "staged"), caches }: Staging = {},
): Promise<void> {
  const cache = new ContentCache("staged", MOST_BYTES, caches);
  const key = keyOfSources();
  const kept = join(parent, key);
  if (!existsSync(kept)) {
    const unfinished = join(parent, `unfinished-${process.pid}`);
    if (!(await restore(cache, key, unfinished))) {
      await stage(unfinished);
      await store(cache, key, unfinished);
    }
    for (const old of readdirSync(parent))
      if (!old.startsWith("unfinished-")) rmSync(join(parent, old), { recursive: true });
    if (existsSync(kept)) rmSync(unfinished, { recursive: true });
    else renameSync(unfinished, kept); // another process sees the whole folder or none
  }
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await cp(kept, folder, { recursive: true });
}

async function restore(cache: ContentCache, key: string, folder: string): Promise<boolean> {
  mkdirSync(folder, { recursive: true });
  const archive = `${folder}.tar`;
  if (!cache.restore(key, archive)) return false;
  const { status } = await run(["tar", "-xf", archive, "-C", folder]);
  rmSync(archive);
  return status === 0;
}

async function store(cache: ContentCache, key: string, folder: string): Promise<void> {
  const archive = `${folder}.tar`;
  await runOrFail("Packing the staged package", ["tar", "-cf", archive, "-C", folder, "."]);
  cache.store(key, archive);
  cache.trim();
  rmSync(archive);
}

function keyOfSources(): string {
  const files = inputs.flatMap((glob) => [...new Bun.Glob(glob).scanSync({ cwd: packageRoot })]);
  const texts = files.sort().flatMap((file) => [file, readFileSync(join(packageRoot, file))]);
  return contentKey([Bun.version_with_sha, process.env["GITHUB_REPOSITORY"] ?? "", ...texts]);
}
