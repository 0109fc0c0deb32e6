import { describe, expect, test } from "bun:test";
import { memoryLimit, processorLimit } from "../../src/core/limits.ts";
import { testFolder } from "../support/folder.ts";
import { inGroup1, inGroup2, mountinfo, systemRoot } from "../support/system-root.ts";

const folder = testFolder("limits");
const v2 = "sys/fs/cgroup";
const v1 = "sys/fs/cgroup/cpu,cpuacct";

type Files = Readonly<Record<string, string>>;

const hybrid = {
  "proc/self/cgroup": "4:cpu:/one\n0::/two\n",
  "proc/self/mountinfo": mountinfo(
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
  ),
};
/** Docker without a namespace of control groups: the path is the host's, and the mount shows the container's. */
const container = {
  "proc/self/cgroup": "4:cpu:/docker/1f/in\n",
  "proc/self/mountinfo": mountinfo("32 31 0:29 /docker/1f /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu"),
};
const outside = { ...inGroup2("/../../user.slice"), [`${v2}/cpu.max`]: "200000 100000\n" };

const processors: [name: string, files: Files, count: number, source: RegExp][] = [
  ["nothing that limits", {}, 16, /machine/],
  ["an affinity mask", { "proc/self/status": "Name:\tbun\nCpus_allowed_list:\t0-3,8,10-11\n" }, 7, /affinity/],
  ["one processor", { "proc/self/status": "Cpus_allowed_list:\t5\n" }, 1, /affinity/],
  ["a mask of more than there are", { "proc/self/status": "Cpus_allowed_list:\t0-255\n" }, 16, /machine/],
  ["version 2", { ...inGroup2("/a"), [`${v2}/a/cpu.max`]: "200000 100000\n" }, 2, /^cpu\.max of .*cgroup\/a$/],
  ["a quota of two and a half", { ...inGroup2("/a"), [`${v2}/a/cpu.max`]: "250000 100000\n" }, 3, /cpu\.max/],
  ["a quota of a tenth", { ...inGroup2("/a"), [`${v2}/a/cpu.max`]: "1000 10000" }, 1, /cpu\.max/],
  ["no quota", { ...inGroup2("/a"), [`${v2}/a/cpu.max`]: "max 100000\n" }, 16, /machine/],
  [
    "a smaller quota two groups above",
    {
      ...inGroup2("/a/b/c"),
      [`${v2}/a/cpu.max`]: "300000 100000\n",
      [`${v2}/a/b/cpu.max`]: "max 100000\n",
      [`${v2}/a/b/c/cpu.max`]: "800000 100000\n",
    },
    3,
    /cgroup\/a$/,
  ],
  [
    "a mask and a larger quota",
    {
      ...inGroup2("/a"),
      [`${v2}/a/cpu.max`]: "800000 100000",
      "proc/self/status": "Cpus_allowed_list:\t0,2\n",
    },
    2,
    /affinity/,
  ],
  [
    "version 1",
    { ...inGroup1("/a/b"), [`${v1}/a/cpu.cfs_quota_us`]: "150000\n", [`${v1}/a/cpu.cfs_period_us`]: "50000\n" },
    3,
    /^cpu\.cfs_quota_us of .*\/a$/,
  ],
  [
    "version 1 without a quota",
    { ...inGroup1("/a"), [`${v1}/a/cpu.cfs_quota_us`]: "-1\n", [`${v1}/a/cpu.cfs_period_us`]: "100000\n" },
    16,
    /machine/,
  ],
  [
    "both versions, the first smaller",
    {
      ...hybrid,
      "sys/fs/cgroup/cpu/one/cpu.cfs_quota_us": "400000",
      "sys/fs/cgroup/cpu/one/cpu.cfs_period_us": "100000",
      "sys/fs/cgroup/unified/two/cpu.max": "500000 100000",
    },
    4,
    /cfs_quota_us/,
  ],
  ["both versions, the second smaller", { ...hybrid, "sys/fs/cgroup/unified/two/cpu.max": "5 1" }, 5, /cpu\.max/],
  [
    "a container's group, which its mount shows",
    {
      ...container,
      "sys/fs/cgroup/cpu/in/cpu.cfs_quota_us": "600000",
      "sys/fs/cgroup/cpu/in/cpu.cfs_period_us": "100000",
      "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "500000",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    },
    5,
    /cgroup\/cpu$/,
  ],
  ["a group outside what is mounted", outside, 2, /cpu\.max/],
  [
    "a mount point with a blank",
    {
      "proc/self/cgroup": "0::/a b\n",
      "proc/self/mountinfo": mountinfo("35 24 0:30 / /sys/my\\040groups rw - cgroup2 cgroup2 rw"),
      "sys/my groups/a b/cpu.max": "200000 100000",
    },
    2,
    /my groups\/a b$/,
  ],
  ["groups that have no folder", inGroup2("/gone/away"), 16, /machine/],
];

describe("the number of processors that this process may use", () => {
  test.each(processors)("%s sets the number of processors", (_, files, count, source) => {
    const limit = processorLimit(systemRoot(folder, files), 16);
    expect(limit).toEqual({ count, source: expect.stringMatching(source) });
  });

  test("files with invalid contents set no limit", () => {
    const texts = ["", "\n", "max", "0 0", "-5 100000", "1e3 7", "x y z", "100000", "\0\0", "9".repeat(400), "5 max"];
    for (const text of texts) {
      const files = {
        ...inGroup2("/a"),
        [`${v2}/a/cpu.max`]: text,
        "proc/self/status": `Cpus_allowed_list:\t${text}-\n`,
      };
      expect([text, processorLimit(systemRoot(folder, files), 16).count]).toEqual([text, 16]);
      for (const path of ["proc/self/cgroup", "proc/self/mountinfo"]) {
        const broken = { ...inGroup2("/a"), [`${v2}/a/cpu.max`]: "200000 100000", [path]: text };
        expect([path, text, processorLimit(systemRoot(folder, broken), 16).count]).toEqual([path, text, 16]);
      }
    }
  });
});

const GB = 2 ** 30;
const memory1 = "sys/fs/cgroup/memory";
const limitsFile = (space: string, data: string): string =>
  [
    "Limit                     Soft Limit           Hard Limit           Units     ",
    "Max cpu time              unlimited            unlimited            seconds   ",
    `Max data size             ${data.padEnd(21)}unlimited            bytes     `,
    `Max address space         ${space.padEnd(21)}unlimited            bytes     `,
    "",
  ].join("\n");
const status = { "proc/self/status": `VmSize:\t${6 * 2 ** 20} kB\nVmData:\t${2 ** 20} kB\nRssAnon:\t100 kB\n` };

const memories: [name: string, files: Files, count: number, source: RegExp][] = [
  ["nothing that limits", {}, 12 * GB, /machine/],
  ["version 2", { ...inGroup2("/a"), [`${v2}/a/memory.max`]: `${8 * GB}\n` }, 6 * GB, /memory\.max of .*cgroup\/a$/],
  ["a throttled group", { ...inGroup2("/a"), [`${v2}/a/memory.high`]: `${8 * GB}\n` }, 6 * GB, /memory\.high/],
  ["no limit", { ...inGroup2("/a"), [`${v2}/a/memory.max`]: "max\n" }, 12 * GB, /machine/],
  [
    "a smaller limit above",
    {
      ...inGroup2("/a/b/c"),
      [`${v2}/a/memory.max`]: `${2 * GB}\n`,
      [`${v2}/a/b/memory.max`]: "max\n",
      [`${v2}/a/b/c/memory.max`]: `${4 * GB}\n`,
    },
    1.5 * GB,
    /cgroup\/a$/,
  ],
  ["one and a half GB", { ...inGroup2("/a"), [`${v2}/a/memory.max`]: `${1.5 * GB}` }, 1.125 * GB, /memory\.max/],
  ["half a GB", { ...inGroup2("/a"), [`${v2}/a/memory.max`]: `${GB / 2}` }, GB / 4, /memory\.max/],
  ["very little", { ...inGroup2("/a"), [`${v2}/a/memory.max`]: `${100 << 20}` }, 25 << 20, /memory\.max/],
  [
    "version 1",
    { ...inGroup1("/a/b"), [`${memory1}/a/memory.limit_in_bytes`]: `${4 * GB}\n` },
    3 * GB,
    /^of 4294967296 bytes: memory\.limit_in_bytes of the control group .*memory\/a$/,
  ],
  [
    "version 1 without a limit",
    { ...inGroup1("/a"), [`${memory1}/a/memory.limit_in_bytes`]: "9223372036854771712\n" },
    12 * GB,
    /machine/,
  ],
  [
    "an address space, of which 6 GB are taken",
    { ...status, "proc/self/limits": limitsFile(`${14 * GB}`, "unlimited") },
    6 * GB,
    /RLIMIT_AS/,
  ],
  [
    "a data size, of which 1 GB is taken",
    { ...status, "proc/self/limits": limitsFile("unlimited", `${5 * GB}`) },
    3 * GB,
    /RLIMIT_DATA/,
  ],
  [
    "an address space that is taken",
    { ...status, "proc/self/limits": limitsFile("4096", "unlimited") },
    0,
    /RLIMIT_AS/,
  ],
];

describe("the memory limit of tensors", () => {
  test.each(memories)("%s sets the memory limit", (_, files, count, source) => {
    const limit = memoryLimit(systemRoot(folder, files), 16 * GB, {});
    expect(limit).toMatchObject({ count, source: expect.stringMatching(source) });
    expect(limit.resident).toBeGreaterThan(limit.count);
  });

  test("files with invalid contents set no limit", () => {
    for (const text of ["", "\n", "max", "-1", "0x100", "1e3", "-5", "1 2", "\0", "9".repeat(400)]) {
      const files = {
        ...inGroup2("/a"),
        [`${v2}/a/memory.max`]: text,
        [`${v2}/a/memory.high`]: text,
        "proc/self/limits": limitsFile(text, text),
        "proc/self/status": text,
      };
      expect([text, memoryLimit(systemRoot(folder, files), 16 * GB, {}).count]).toEqual([text, 12 * GB]);
    }
  });

  test("the environment sets the limit", () => {
    const of = (text: string) => memoryLimit("/", 16 * GB, { ORCHARD_MEMORY_LIMIT: text });
    expect(of("1000000")).toMatchObject({ count: 1_000_000, source: "ORCHARD_MEMORY_LIMIT" });
    expect(of("").count).toBeLessThanOrEqual(12 * GB);
    for (const text of ["0", "-1", "1.5", "2GB", "many", "9".repeat(400)])
      expect(() => of(text), text).toThrow(`expected ORCHARD_MEMORY_LIMIT to be a whole number of bytes`);
  });
});
