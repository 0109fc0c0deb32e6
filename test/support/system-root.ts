import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TestFolder } from "./folder.ts";

/** Creates a folder for `ORCHARD_SYSTEM_ROOT` with these files, by path. */
export function systemRoot(folder: TestFolder, files: Readonly<Record<string, string>>): string {
  const root = folder.file(`root-${folder.names().length}`);
  mkdirSync(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** `mountinfo` and `cgroup` of a process in the group `path`, for control groups of version 2. */
export const inGroup2 = (path: string): Record<string, string> => ({
  "proc/self/cgroup": `0::${path}\n`,
  "proc/self/mountinfo": mountinfo("35 24 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate"),
});

/**
 * `mountinfo` and `cgroup` of a process, for control groups of version 1 with hierarchies for processors and memory.
 */
export const inGroup1 = (path: string): Record<string, string> => ({
  "proc/self/cgroup": `5:cpu,cpuacct:${path}\n4:memory:${path}\n1:name=systemd:/\n`,
  "proc/self/mountinfo": mountinfo(
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct",
    "34 31 0:31 / /sys/fs/cgroup/memory rw,nosuid shared:16 master:4 - cgroup cgroup rw,memory",
  ),
});

/** Adds lines that are not about control groups. */
export const mountinfo = (...lines: string[]): string =>
  [
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    "24 22 0:5 / /proc rw,nosuid - proc proc rw",
    ...lines,
    "40 22 0:40 / /tmp rw - tmpfs tmpfs rw",
    "",
  ].join("\n");
