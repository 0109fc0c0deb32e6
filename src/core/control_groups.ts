/** The Linux control groups (version 1, version 2 or both) of this process, and their limits. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export type Controller = "cpu" | "memory";

/** The folder of a control group, and the version of its files. */
export interface GroupFolder {
  readonly version: 1 | 2;
  readonly path: string;
}

/** A mounted hierarchy of control groups. */
interface Hierarchy {
  readonly version: 1 | 2;
  /** The controllers, for version 1. Version 2 has one hierarchy for all. */
  readonly controllers: readonly string[];
  /** The group at the mount point. */
  readonly root: string;
  readonly mountPoint: string;
}

/** Returns the contents of a system file; an empty string if it does not exist or can't be read. */
export function readSystemFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/**
 * Returns the folders of the process's group and its ancestors, as far as they are mounted. The limits of each apply.
 *
 * @param systemRoot the folder to use as `/`
 */
export function groupFolders(controller: Controller, systemRoot: string): GroupFolder[] {
  const mountinfo = readSystemFile(join(systemRoot, "proc/self/mountinfo"));
  if (parsed?.text !== mountinfo) parsed = { text: mountinfo, hierarchies: parseMounts(mountinfo) };
  const { hierarchies } = parsed;
  const groups = parseGroups(readSystemFile(join(systemRoot, "proc/self/cgroup")));
  return groups.flatMap(({ controllers, path }) => {
    const version = controllers.length === 0 ? 2 : 1;
    if (version === 1 && !controllers.includes(controller)) return [];
    const mounts = hierarchies.filter(
      (mount) => mount.version === version && (version === 2 || mount.controllers.includes(controller)),
    );
    const showing = mounts.filter(({ root }) => isWithin(path, root));
    // If no mount contains the group, as in some containers, use the mount point.
    return (showing.length > 0 ? showing : mounts).flatMap((mount) =>
      foldersUpTo(mount, path).map((folder) => ({ version, path: join(systemRoot, folder) }) as const),
    );
  });
}

/** The mounts that were parsed last: a process reads the limits of memory and of processors one after the other. */
let parsed: { readonly text: string; readonly hierarchies: readonly Hierarchy[] } | undefined;

/** Parses lines such as `4:cpu,cpuacct:/docker/1f` (version 1) and `0::/user.slice` (version 2). */
function parseGroups(text: string): { controllers: string[]; path: string }[] {
  return text.split("\n").flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    return path === undefined ? [] : [{ controllers: controllers.split(",").filter(Boolean), path }];
  });
}

/** Parses lines such as `33 31 0:30 / /sys/fs/cgroup/cpu rw shared:7 - cgroup cgroup rw,cpu`. */
function parseMounts(text: string): Hierarchy[] {
  const lines = text.split("\n").filter((line) => line.includes(" - cgroup")); // a system may have thousands of mounts
  return lines.flatMap((line): Hierarchy[] => {
    const [mount = "", source = ""] = line.split(" - ", 2);
    const [, , , root, mountPoint] = mount.split(" ");
    const [kind, , options = ""] = source.split(" ");
    if (root === undefined || mountPoint === undefined || (kind !== "cgroup" && kind !== "cgroup2")) return [];
    const version = kind === "cgroup" ? 1 : 2;
    return [{ version, controllers: options.split(","), root: unescaped(root), mountPoint: unescaped(mountPoint) }];
  });
}

/** The kernel writes spaces as `\040`. */
const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

const isWithin = (path: string, root: string): boolean =>
  !path.startsWith("/..") && (root === "/" || path === root || path.startsWith(`${root}/`));

/** Returns the group's folder and its parents up to the mount point. */
function foldersUpTo({ root, mountPoint }: Hierarchy, path: string): string[] {
  const below = isWithin(path, root) ? path.slice(root === "/" ? 0 : root.length) : "";
  const names = below.split("/").filter(Boolean);
  return [...names, ""].map((_, count) => join(mountPoint, ...names.slice(0, names.length - count)));
}
