/** Brings OpenBLAS from Debian's packages into the user's cache, where the machine has no BLAS. No root is needed. */
import { dlopen } from "bun:ffi";
import { existsSync } from "node:fs";
import { copyFile, mkdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { broughtBlas, systemBlas } from "../../src/backend/cpu/loader.ts";
import { architecture } from "../../src/cli/toolchain.ts";
import { environment } from "../../src/core/environment.ts";
import { Failure } from "../failure.ts";
import { withSpinner } from "../progress.ts";
import { runOrFail } from "../run.ts";
import { Apt } from "./apt.ts";
import { parseRelease } from "./install.ts";
import { withLock } from "./lock.ts";

/** The library, by its name for the loader, and the packages that hold it and what it needs. */
const packages = ["libopenblas0-pthread", "libgfortran5", ...(process.arch === "x64" ? ["libquadmath0"] : [])];
const libraries = ["libopenblas.so.0", "libgfortran.so.5", ...(process.arch === "x64" ? ["libquadmath.so.0"] : [])];

/**
 * Does nothing on macOS, where the system has a BLAS, one is named by `ORCHARD_BLAS`, or one was brought before. Where none can be had, says
 * so: the cpu backend has a matrix product of its own.
 */
export async function bringBlas(): Promise<void> {
  const target = broughtBlas();
  if (process.platform !== "linux" || environment("ORCHARD_BLAS") || existsSync(target) || systemHasBlas()) return;
  try {
    await withSpinner("Bringing OpenBLAS", (progress) => install(dirname(target), progress));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.log(
      `There is no OpenBLAS (${error.message}). The cpu backend's own matrix product serves, at a lower speed.`,
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
    () => progress("Waiting for another set-up that is bringing OpenBLAS"),
    async () => {
      if (existsSync(final)) return;
      progress("Reading Debian's package lists");
      const apt = await Apt.open(work, codename, [codename]);
      const files = await apt.download(packages, codename, (percent) =>
        progress(`Downloading: ${percent.toFixed(0)} %`),
      );
      await unpack(files, join(work, "root"), join(work, "libraries"));
      await rename(join(work, "libraries"), final); // at once: whoever finds the folder finds it whole
      await rm(work, { recursive: true, force: true });
    },
  );
}

async function debianRelease(): Promise<string> {
  const release = Bun.file("/etc/os-release");
  const facts = (await release.exists()) ? parseRelease(await release.text()) : {};
  const codename = facts["VERSION_CODENAME"];
  if (facts["ID"] !== "debian" || !codename || !architecture || !Bun.which("apt-get") || !Bun.which("dpkg"))
    throw new Failure("it can be brought to Debian only; elsewhere, install it with the system's package manager");
  return codename;
}

/** The libraries alone, in one folder, under the names that the loader asks for. */
async function unpack(files: readonly string[], root: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const file of files) await runOrFail(`Unpacking ${basename(file)}`, ["dpkg", "-x", file, root]);
  for (const name of libraries) {
    const [found] = new Bun.Glob(`usr/lib/**/${name}`).scanSync({ cwd: root, absolute: true, onlyFiles: false });
    if (!found) throw new Failure(`Debian's packages hold no ${name}`);
    await copyFile(found, join(folder, name));
  }
}
