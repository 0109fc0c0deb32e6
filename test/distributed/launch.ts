/** Programs as ranks of MPI, with each library that this machine has or can install. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { fromJson } from "./json.ts";

/** A library with its launcher; `missing` says why there is none. */
export interface Installation {
  readonly name: "Open MPI" | "MPICH";
  readonly launcher: string;
  readonly missing: string | undefined;
}

const debian = {
  "Open MPI": { launcher: "mpirun.openmpi", elsewhere: "mpirun", packages: ["openmpi-bin"] },
  MPICH: { launcher: "mpirun.mpich", elsewhere: "mpiexec.hydra", packages: ["mpich"] },
} as const;

/** Finds a library's launcher; on Debian, root installs what is missing, from the machine's own mirror. */
function install(name: Installation["name"]): Installation {
  const { launcher, elsewhere, packages } = debian[name];
  const found = () => Bun.which(launcher) ?? Bun.which(elsewhere);
  const isRoot = process.getuid?.() === 0;
  if (found() === null && isRoot && Bun.which("apt-get") !== null) {
    const apt = (...words: string[]) =>
      Bun.spawnSync(["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", ...words], {
        env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
        ...({ stdout: "ignore", stderr: "ignore", timeout: 300_000 } as const),
      });
    const wanted = ["install", "-y", "--no-install-recommends", ...packages];
    if (apt(...wanted).exitCode !== 0) {
      apt("update");
      apt(...wanted);
    }
  }
  const path = found();
  const missing = path === null ? `${name} is not here, and apt-get could not install ${packages.join()}` : undefined;
  return { name, launcher: path ?? launcher, missing };
}

/** Both libraries; a line on each that is not here says why its tests are skipped. */
export const openMpi = install("Open MPI");
export const mpich = install("MPICH");
for (const { missing } of [openMpi, mpich]) if (missing !== undefined) console.warn(`skipped: ${missing}`);

/** As root, and with more ranks than processors, as tests run; Open MPI 4 and 5 read other names. */
const permissions = {
  OMPI_ALLOW_RUN_AS_ROOT: "1",
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1",
  OMPI_MCA_rmaps_base_oversubscribe: "1",
  PRTE_MCA_rmaps_default_mapping_policy: ":oversubscribe",
  OMPI_MCA_hwloc_base_binding_policy: "none",
  OMPI_MCA_btl_vader_single_copy_mechanism: "none", // containers forbid ptrace
  OMPI_MCA_btl: "self,vader,tcp",
  OMPI_MCA_pml: "ob1",
  ORCHARD_BACKEND: "cpu",
  ORCHARD_CPU_THREADS: "1",
};

/** Starts a command as ranks. */
export function launch(
  { launcher }: Installation,
  ranks: number,
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = {},
) {
  return Bun.spawn([launcher, "-n", String(ranks), process.execPath, ...words], {
    ...({ stdout: "pipe", stderr: "pipe" } as const),
    cwd: packageRoot,
    env: { ...process.env, ...permissions, NODE_ENV: undefined, ...environment },
  });
}

/** Runs a program of `programs` to its end. Each rank writes a file of JSON, whose contents are returned. */
export async function runProgram<Result>(
  installation: Installation,
  ranks: number,
  program: string,
  folder: string,
  environment: Readonly<Record<string, string | undefined>> = {},
): Promise<{ readonly ranks: readonly Result[]; readonly text: string; readonly status: number }> {
  const path = join(packageRoot, "test/distributed/programs", program);
  const child = launch(installation, ranks, [path, folder], environment);
  const [out, err, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const results = Array.from({ length: ranks }, (_, rank) => {
    const file = join(folder, `rank-${rank}.json`);
    return existsSync(file) ? JSON.parse(readFileSync(file, "utf8"), fromJson) : undefined;
  });
  return { ranks: results as Result[], text: `${out}${err}`, status };
}
