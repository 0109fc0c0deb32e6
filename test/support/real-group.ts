/** Control groups of the running system, if a test may create one (version 1 or 2, as root). */
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Controller, groupFolders } from "../../src/core/control_groups.ts";

/** Limits of a group: file names of each version, and their contents. */
export interface GroupLimits {
  readonly 1: Readonly<Record<string, string>>;
  readonly 2: Readonly<Record<string, string>>;
}

let made = 0;

/** Creates a group below this process's with the limits; undefined if the system does not permit it. */
function makeGroup(controller: Controller, limits: GroupLimits): string | undefined {
  for (const { version, path } of groupFolders(controller, "/")) {
    const group = join(path, `orchard-test-${process.pid}-${made++}`);
    try {
      mkdirSync(group);
    } catch {
      continue;
    }
    try {
      for (const [file, text] of Object.entries(limits[version]))
        writeFileSync(join(group, file), text, { flag: "r+" });
      return group;
    } catch {
      rmdirSync(group);
    }
  }
  return undefined;
}

/** Runs a program in a new group with limits; undefined if the system permits no group. */
export function spawnInGroup(
  controller: Controller,
  limits: GroupLimits,
  command: readonly string[],
  options: { cwd: string; env: Record<string, string | undefined> },
): { stdout: string; stderr: string; exitCode: number | null; signal: string | number | undefined } | undefined {
  const group = makeGroup(controller, limits);
  if (group === undefined) return undefined;
  try {
    const enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group, ...command];
    const { stdout, stderr, exitCode, signalCode } = Bun.spawnSync(enter, options);
    return { stdout: stdout.toString(), stderr: stderr.toString(), exitCode, signal: signalCode };
  } finally {
    removeGroup(group);
  }
}

/** The kernel may take a moment until a group counts as empty. */
function removeGroup(group: string): void {
  for (let attempts = 100; attempts > 0; attempts--) {
    try {
      rmdirSync(group);
      return;
    } catch {
      Bun.sleepSync(10);
    }
  }
  throw new Error(`the test's control group ${group} can't be removed`);
}

/** Whether {@link spawnInGroup} can make a group here. */
export function mayMakeGroups(controller: Controller, limits: GroupLimits): boolean {
  const group = makeGroup(controller, limits);
  if (group === undefined) return false;
  removeGroup(group);
  return true;
}
