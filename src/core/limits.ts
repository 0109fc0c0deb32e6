/** The system's limits on the processors and memory of this process. */
import { totalmem } from "node:os";
import { join } from "node:path";
import { type GroupFolder, groupFolders, readSystemFile } from "./control_groups.ts";
import { environment } from "./environment.ts";
import { ArgumentError } from "./errors.ts";

/** A limit and its source, for messages. */
export interface Limit {
  readonly count: number;
  readonly source: string;
}

const systemRoot = (): string => environment("ORCHARD_SYSTEM_ROOT") ?? "/";
const smallest = (limits: readonly Limit[]): Limit => limits.reduce((a, b) => (b.count < a.count ? b : a));

/**
 * Returns the number of processors that this process may use: the minimum of the machine's processors, the affinity
 * mask, and the quotas of its control groups, rounded up.
 */
export const processorLimit = (root = systemRoot(), machine = navigator.hardwareConcurrency): Limit =>
  smallest([
    { count: machine, source: "the machine's processors" },
    ...affinity(readSystemFile(join(root, "proc/self/status"))),
    ...groupFolders("cpu", root).flatMap(quota),
  ]);

/** Parses the line `Cpus_allowed_list:	0-3,8`. */
function affinity(status: string): Limit[] {
  const counts = restOfLine(status, "Cpus_allowed_list:")
    .split(",")
    .map((range) => {
      const [first, last = first] = range.split("-").map(wholeNumber);
      return last - first + 1;
    });
  const count = counts.reduce((sum, each) => sum + each, 0);
  return count >= 1 ? [{ count, source: "the process's affinity mask" }] : [];
}

/**
 * Returns the rest of the first line with a start; an empty string if there is none. A regular expression for each
 * start would take longer to compile, at each start of a process.
 */
function restOfLine(text: string, start: string): string {
  const lines = `\n${text}\n`;
  const at = lines.indexOf(`\n${start}`);
  return at < 0 ? "" : lines.slice(at + 1 + start.length, lines.indexOf("\n", at + 1)).trim();
}

/** Reads microseconds of CPU time per period: in version 2 `200000 100000`, or `max 100000` without a quota. */
function quota({ version, path }: GroupFolder): Limit[] {
  const name = version === 2 ? "cpu.max" : "cpu.cfs_quota_us";
  const text = readSystemFile(join(path, name));
  const [quotaText, periodText] =
    version === 2 ? text.trim().split(/\s+/) : [text.trim(), readSystemFile(join(path, "cpu.cfs_period_us")).trim()];
  const processors = wholeNumber(quotaText) / wholeNumber(periodText);
  if (!(processors > 0 && processors < Infinity)) return [];
  return [{ count: Math.max(1, Math.ceil(processors)), source: `${name} of the control group ${path}` }];
}

/** Parses a whole number; NaN for other texts, such as `max` and `-1`. */
const wholeNumber = (text: string | undefined): number =>
  text !== undefined && /^\d+$/.test(text) ? Number(text) : Number.NaN;

/** The memory limit of tensors on all backends together. */
export interface MemoryLimit extends Limit {
  /** Bytes of memory available to the process: the machine's memory or the limit of its control groups. */
  readonly available: number;
  /** Maximum bytes of the whole process in memory: 15/16 of `available`. */
  readonly resident: number;
}

const MB = 2 ** 20;
/** The rest is for JavaScript, libraries, cached free blocks, and arrays that tensors are read into. */
const usable = (bytes: number): number => Math.floor(Math.max(bytes / 4, Math.min(0.75 * bytes, bytes - 256 * MB), 0));

/**
 * Returns the maximum bytes of tensors, for the smallest limit L that applies: max(L / 4, min(3/4 L, L − 256 MB)). The
 * limits are the machine's memory, `memory.max` and `memory.high` of the process's control groups or
 * `memory.limit_in_bytes`, and the part of `RLIMIT_AS` and `RLIMIT_DATA` that the process has not used yet.
 * `ORCHARD_MEMORY_LIMIT` replaces this rule.
 */
export function memoryLimit(
  root = systemRoot(),
  machine = totalmem(),
  values: Record<string, string | undefined> = process.env,
): MemoryLimit {
  const groups = groupFolders("memory", root).flatMap(groupMemory);
  const inMemory = smallest([{ count: machine, source: "the machine's memory" }, ...groups]);
  const available = inMemory.count;
  const resident = Math.floor((available / 16) * 15);
  const chosen = environment("ORCHARD_MEMORY_LIMIT", values);
  if (chosen !== undefined) return { count: checkedBytes(chosen), available, resident, source: "ORCHARD_MEMORY_LIMIT" };
  const { count, source } = smallest([inMemory, ...resourceLimits(root)]);
  return { count: usable(count), available, resident, source: `of ${count} bytes: ${source}` };
}

function groupMemory({ version, path }: GroupFolder): Limit[] {
  const names = version === 2 ? ["memory.max", "memory.high"] : ["memory.limit_in_bytes"];
  return names.flatMap((name) => {
    const count = wholeNumber(readSystemFile(join(path, name)).trim());
    return Number.isNaN(count) ? [] : [{ count, source: `${name} of the control group ${path}` }];
  });
}

/** Returns the process's resource limits minus the memory used before the first tensor. */
function resourceLimits(root: string): Limit[] {
  const limits = readSystemFile(join(root, "proc/self/limits"));
  const status = readSystemFile(join(root, "proc/self/status"));
  const of = (name: string, title: string, taken: string): Limit[] => {
    const [soft, , unit] = restOfLine(limits, `Max ${title} `).split(" ").filter(Boolean);
    const count = unit === "bytes" ? wholeNumber(soft) : Number.NaN;
    if (Number.isNaN(count)) return [];
    return [{ count: Math.max(0, count - statusBytes(status, taken)), source: `what ${name} leaves` }];
  };
  return [...of("RLIMIT_AS", "address space", "VmSize"), ...of("RLIMIT_DATA", "data size", "VmData")];
}

/** Reads a line such as `VmSize:	 6555484 kB`; 0 if it is missing. */
const statusBytes = (status: string, name: string): number =>
  (Number.parseInt(restOfLine(status, `${name}:`), 10) || 0) * 1024;

/** Returns the process's anonymous resident memory in bytes; 0 if the system does not report it. */
export const residentBytes = (): number => statusBytes(readSystemFile("/proc/self/status"), "RssAnon");

function checkedBytes(text: string): number {
  const bytes = wholeNumber(text);
  if (Number.isSafeInteger(bytes) && bytes > 0) return bytes;
  throw new ArgumentError(
    "environment",
    "invalidSetting",
    `expected ORCHARD_MEMORY_LIMIT to be a whole number of bytes of at least 1, got "${text}"`,
  );
}
