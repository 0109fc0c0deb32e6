/** The number of threads of a process that may use fewer processors than the machine has. */
import { describe, expect, test } from "bun:test";
import { environmentFlag } from "../../../src/core/environment.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";
import { mayMakeGroups, spawnInGroup } from "../../support/real-group.ts";
import { inGroup1, inGroup2, systemRoot } from "../../support/system-root.ts";

const folder = testFolder("processors");

/** The threads of a separate process, and the kernel's view of its mask. */
const program = `
  import { dlopen } from "bun:ffi";
  import { cpuLibrary } from "./src/backend/cpu/loader.ts";
  import { cpuInfo } from "./src/backend/cpu/report.ts";
  import { withBackend } from "./src/backend/policy.ts";
  import { metalContext } from "./src/backend/metal/context.ts";
  import { ones } from "./src/index.ts";
  const { threads, blas } = cpuInfo(cpuLibrary().native);
  const blasThreads = blas?.name === "OpenBLAS"
    ? dlopen(blas.path, { openblas_get_num_threads: { args: [], returns: "i32" } }).symbols.openblas_get_num_threads()
    : 1; // there is no OpenBLAS to tell
  const sum = withBackend("cpu", () => ones([1 << 20]).sum().item());
  const workers = process.env.WITH_METAL === "1" ? metalContext().report().settings?.workers : null;
  console.log(JSON.stringify({ threads, blasThreads, sum, workers }));`;

const onLinux = process.platform === "linux";
const withMetal = onLinux && !environmentFlag("ORCHARD_SKIP_METAL");
const unset = { ORCHARD_CPU_THREADS: "", ORCHARD_METAL_WORKERS: "", ORCHARD_BLAS: "" };
const options = (environment: Record<string, string>) => ({
  cwd: packageRoot,
  env: { ...process.env, ...unset, WITH_METAL: withMetal ? "1" : "0", ...environment },
});

function computedWith(environment: Record<string, string>, prefix: readonly string[] = []) {
  const { stdout, stderr } = Bun.spawnSync([...prefix, process.execPath, "-e", program], options(environment));
  if (stdout.length === 0) throw new Error(stderr.toString());
  return JSON.parse(stdout.toString());
}

const computes = (threads: number) => ({
  threads,
  blasThreads: 1,
  sum: 2 ** 20,
  workers: withMetal ? threads : null,
});

describe.if(onLinux)("the number of threads matches the processors that the process may use", () => {
  test("the number of threads follows an affinity mask", () => {
    expect(computedWith({}, ["taskset", "-c", "0"])).toEqual(computes(1));
  });

  test("the number of threads follows a quota, of either version of control groups", () => {
    const second = { ...inGroup2("/job/step"), "sys/fs/cgroup/job/cpu.max": "100000 100000\n" };
    expect(computedWith({ ORCHARD_SYSTEM_ROOT: systemRoot(folder, second) })).toEqual(computes(1));
    const first = {
      ...inGroup1("/job"),
      "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "50000\n",
      "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
    };
    expect(computedWith({ ORCHARD_SYSTEM_ROOT: systemRoot(folder, first) })).toEqual(computes(1));
  });

  const quota = {
    1: { "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "90000" },
    2: { "cpu.max": "90000 100000" },
  };
  test.if(mayMakeGroups("cpu", quota))("the number of threads follows a quota of this system", () => {
    const child = spawnInGroup("cpu", quota, [...bunWords, "-e", program], options({}));
    expect(JSON.parse(child!.stdout)).toEqual(computes(1));
  });

  test("the environment overrides the number of threads", () => {
    const asked = { ORCHARD_CPU_THREADS: "3", ORCHARD_METAL_WORKERS: "5" };
    const { threads, workers } = computedWith(asked, ["taskset", "-c", "0"]);
    expect([threads, workers]).toEqual([3, withMetal ? 5 : null]);
    expect(computedWith({ ORCHARD_CPU_THREADS: "auto" }, ["taskset", "-c", "0"]).threads).toBe(1);
  });
});
