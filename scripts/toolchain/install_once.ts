/** Installs parts of a toolchain in the user's cache. */
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { basename } from "node:path";
import { withLock } from "../../src/cli/toolchain/lock.ts";

/** Shows the progress of an installation. */
export type Progress = (text: string) => void;

/** Runs `install` in a temporary folder, and renames it to `final` when complete. Does nothing if `final` exists. */
export async function installOnce(
  final: string,
  progress: Progress,
  install: (work: string) => Promise<void>,
): Promise<void> {
  if (existsSync(final)) return;
  const work = `${final}.partial`;
  await mkdir(work, { recursive: true });
  const onWait = () => progress(`Waiting for another run that is installing ${basename(final)}`);
  await withLock(`${final}.lock`, onWait, async () => {
    if (existsSync(final)) return;
    await rm(work, { recursive: true, force: true }); // left by a killed run
    await mkdir(work, { recursive: true });
    await install(work);
    await rename(work, final);
  });
}
