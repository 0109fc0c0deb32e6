/** The control groups of Linux (versions 1 and 2, or both at once) that this process is in, and their limits. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export type Controller = "cpu" | "memory";

/** A folder of a control group, with the version of its files. */
export interface GroupFolder {
  readonly version: 1 | 2;
  readonly path: string;
}

/** A hierarchy of control groups as it is mounted. */
interface Hierarchy {
  readonly version: 1 | 2;
  /** Of version 1; version 2 has one hierarchy for all. */
  readonly controllers: readonly string[];
  /** The group that the mount point shows. */
  readonly root: string;
  readonly mountPoint: string;
}

/** What a file of the system holds; empty where it is not there, or may not be read. */
export function readSystemFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/**
 * The folders of the process's group and of all groups above it, as far as they are mounted. Limits of each hold.
 *
 * @param systemRoot the folder that stands for `/`
 */
export function groupFolders(controller: Controller, systemRoot: string): GroupFolder[] {
  const hierarchies = parseMounts(readSystemFile(join(systemRoot, "proc/self/mountinfo")));
  const groups = parseGroups(readSystemFile(join(systemRoot, "proc/self/cgroup")));
  return groups.flatMap(({ controllers, path }) => {
    const version = controllers.length === 0 ? 2 : 1;
    if (version === 1 && !controllers.includes(controller)) return [];
    const mounts = hierarchies.filter(
      (mount) => mount.version === version && (version === 2 || mount.controllers.includes(controller)),
    );
    const showing = mounts.filter(({ root }) => isWithin(path, root));
    // Where no mount shows the group, as in some containers, the mount point is what is known of it.
    return (showing.length > 0 ? showing : mounts).flatMap((mount) =>
      foldersUpTo(mount, path).map((folder) => ({ version, path: join(systemRoot, folder) }) as const),
    );
  });
}

/** Lines such as `4:cpu,cpuacct:/docker/1f` (version 1) and `0::/user.slice` (version 2). */
function parseGroups(text: string): { controllers: string[]; path: string }[] {
  return text.split("\n").flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    return path === undefined ? [] : [{ controllers: controllers!.split(",").filter(Boolean), path }];
  });
}

/** Lines such as `33 31 0:30 / /sys/fs/cgroup/cpu rw shared:7 - cgroup cgroup rw,cpu`. */
function parseMounts(text: string): Hierarchy[] {
  return text.split("\n").flatMap((line): Hierarchy[] => {
    const [mount = "", source = ""] = line.split(" - ", 2);
    const [, , , root, mountPoint] = mount.split(" ");
    const [kind, , options = ""] = source.split(" ");
    if (root === undefined || mountPoint === undefined || (kind !== "cgroup" && kind !== "cgroup2")) return [];
    const version = kind === "cgroup" ? 1 : 2;
    return [{ version, controllers: options.split(","), root: unescaped(root), mountPoint: unescaped(mountPoint) }];
  });
}

/** The kernel writes blanks as `\040`. */
const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

const isWithin = (path: string, root: string): boolean =>
  !path.startsWith("/..") && (root === "/" || path === root || path.startsWith(`${root}/`));

/** The group's folder, and those above it up to the mount point. */
function foldersUpTo({ root, mountPoint }: Hierarchy, path: string): string[] {
  const below = isWithin(path, root) ? path.slice(root === "/" ? 0 : root.length) : "";
  const names = below.split("/").filter(Boolean);
  return [...names, ""].map((_, count) => join(mountPoint, ...names.slice(0, names.length - count)));
}
