/**
 * Every script starts here. On a fresh clone nothing is installed yet, so this file and its imports use only Bun; the
 * script imports everything else afterwards.
 */
import { join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";
import { Failure } from "./failure.ts";

/**
 * Installs the locked dependencies if they are missing or older than the lock file.
 *
 * @returns whether it installed any. Bun's bundler does not find newly installed packages in this process, because it
 * remembers the folders that it has read
 *
 * @throws {Failure} with the output of a failed installation
 */
export async function installDependencies(root: string = packageRoot): Promise<boolean> {
  const lock = await Bun.file(join(root, "bun.lock")).bytes();
  const expected = Bun.hash(lock).toString(16);
  const stamp = Bun.file(join(root, "node_modules", ".orchard-lock"));
  if ((await stamp.exists()) && (await stamp.text()) === expected) return false;
  console.log("Installing the dependencies that bun.lock names …");
  const install = Bun.spawn([process.execPath, "install", "--frozen-lockfile"], {
    cwd: root,
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = (await Promise.all([install.stdout.text(), install.stderr.text()])).join("");
  if ((await install.exited) !== 0)
    throw new Failure(
      `${output}The dependencies can't be installed (see above). Check the network and the package registry.`,
    );
  await stamp.write(expected);
  return true;
}
