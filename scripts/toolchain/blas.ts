/**
 * Installs OpenBLAS, which includes LAPACK, from Debian's packages into the user's cache if the machine has no BLAS.
 * Root is not needed.
 */
import { dlopen } from "bun:ffi";
import { existsSync } from "node:fs";
import { copyFile, mkdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { broughtBlas, systemBlas } from "../../src/backend/cpu/loader.ts";
import { runOrFail } from "../../src/cli/run.ts";
import { Apt } from "../../src/cli/toolchain/apt.ts";
import { parseRelease } from "../../src/cli/toolchain/install.ts";
import { withLock } from "../../src/cli/toolchain/lock.ts";
import { architecture } from "../../src/cli/toolchain.ts";
import { environment } from "../../src/core/environment.ts";
import { Failure } from "../failure.ts";
import { withSpinner } from "../progress.ts";

/** The packages of the library and its dependencies, and the file names that the loader searches. */
const packages = ["libopenblas0-pthread", "libgfortran5", ...(process.arch === "x64" ? ["libquadmath0"] : [])];
const libraries = ["libopenblas.so.0", "libgfortran.so.5", ...(process.arch === "x64" ? ["libquadmath.so.0"] : [])];

/**
 * Does nothing on macOS, if the system has a BLAS, if `ORCHARD_BLAS` names one, or if one was installed before. If none
 * can be installed, it prints a warning, since the cpu backend has built-in linear algebra.
 *
 * @param show shows its progress
 */
export async function ensureBlas(show: typeof withSpinner = withSpinner): Promise<void> {
  const target = broughtBlas();
  if (process.platform !== "linux" || environment("ORCHARD_BLAS") || existsSync(target) || systemHasBlas()) return;
  try {
    await show("Installing OpenBLAS", (progress) => install(dirname(target), progress));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.log(
      `OpenBLAS is not installed (${error.message}). The cpu backend uses built-in linear algebra, which is slower ` +
        "for large matrices.",
    );
  }
}

function systemHasBlas(): boolean {
  try {
    dlopen(systemBlas, {}).close();
    return true;
  } catch {
    return false;
  }
}

async function install(final: string, progress: (text: string) => void): Promise<void> {
  const codename = await debianRelease();
  const parent = dirname(final);
  const work = join(parent, `.${basename(final)}.partial`);
  await mkdir(work, { recursive: true });
  await withLock(
    join(parent, `.${basename(final)}.lock`),
    () => progress("Waiting for another set-up that is installing OpenBLAS"),
    async () => {
      if (existsSync(final)) return;
      progress("Reading Debian's package lists");
      const apt = await Apt.open(work, codename, [codename]);
      const files = await apt.download(packages, codename, (percent) =>
        progress(`Downloading: ${percent.toFixed(0)} %`),
      );
      await unpack(files, join(work, "root"), join(work, "libraries"));
      await rename(join(work, "libraries"), final); // atomic: the folder is complete as soon as it exists
      await rm(work, { recursive: true, force: true });
    },
  );
}

/** Returns the codename of this machine's release. @throws {Failure} if Debian's packages can't be used */
export async function debianRelease(): Promise<string> {
  const release = Bun.file("/etc/os-release");
  const facts = (await release.exists()) ? parseRelease(await release.text()) : {};
  const codename = facts["VERSION_CODENAME"];
  if (facts["ID"] !== "debian" || !codename || !architecture || !Bun.which("apt-get") || !Bun.which("dpkg"))
    throw new Failure("automatic installation needs Debian; install it with the system's package manager");
  return codename;
}

/** Copies the libraries into one folder, under the names that the loader searches. */
async function unpack(files: readonly string[], root: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const file of files) await runOrFail(`Unpacking ${basename(file)}`, ["dpkg", "-x", file, root]);
  for (const name of libraries) {
    const [found] = new Bun.Glob(`usr/lib/**/${name}`).scanSync({ cwd: root, absolute: true, onlyFiles: false });
    if (!found) throw new Failure(`expected Debian's packages to contain ${name}`);
    await copyFile(found, join(folder, name));
  }
}
