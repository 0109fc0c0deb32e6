/**
 * Chooses the instruction sets of a build of the cpu dylib: all, or those that this machine needs first. For the
 * others, it writes a source that defines their tables, so that the dylib links, and that lists the sets in the build.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { environment } from "../../src/core/environment.ts";
import type { InstructionSet } from "./objects.ts";

/** Linux's names of the features of x86-64-v3 and v4 that runtime/isa.cpp looks for; the largest set comes first. */
const features: Readonly<Record<string, readonly string[]>> = {
  avx512: ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
  avx2: ["avx2", "fma", "f16c", "movbe", "bmi1", "bmi2", "abm"],
};

/**
 * Returns the sets that programs use on this machine: the best that its processor supports, and the one in
 * `ORCHARD_CPU_ISA`; all if the system does not report the processor's features.
 *
 * @param processors Linux's description of the processors; undefined on other systems
 */
export function setsOfMachine(
  all: readonly InstructionSet[],
  processors: string | undefined = readProcessors(),
  chosen: string | undefined = environment("ORCHARD_CPU_ISA"),
): string[] {
  const names = all.map(({ name }) => name);
  const line = /^flags\s*:(.*)$/m.exec(processors ?? "")?.[1];
  if (line === undefined || names.length === 1) return names;
  const present = new Set(line.trim().split(/\s+/));
  const has = (set: string) => Object.hasOwn(features, set) && features[set].every((name) => present.has(name));
  const isRich = has("avx512") && has("avx2");
  const best = isRich ? "avx512" : has("avx2") ? "avx2" : names[0];
  const named = chosen === "avx512_bf16" || chosen === "amx" ? "avx512" : chosen; // both use avx512's tables
  return names.filter((name) => name === best || name === named);
}

const readProcessors = (path = "/proc/cpuinfo"): string | undefined =>
  existsSync(path) ? readFileSync(path, "utf8") : undefined;

/** Returns the tables with an instance per instruction set, as declared in the headers. */
export function tableNames(sourceFolder: string): string[] {
  const headers = new Bun.Glob("**/*.h").scanSync({ cwd: sourceFolder });
  const names = [...headers].flatMap((path) =>
    [...readFileSync(join(sourceFolder, path), "utf8").matchAll(/^ORCHARD_ISA_TABLE\(\w+, (\w+)\)/gm)].map(
      ([, name]) => name,
    ),
  );
  return names.sort();
}

/** Returns the name of `orchard::set::table` in an object file (Itanium C++ ABI, 5.1). */
export const mangled = (set: string, table: string): string => `_ZN7orchard${set.length}${set}${table.length}${table}E`;

/**
 * Returns the source that lists the sets in the dylib. The table of an omitted set is one byte that is never read,
 * since the set is never chosen (runtime/isa.cpp).
 */
export function setsSource(sourceFolder: string, all: readonly InstructionSet[], built: readonly string[]): string {
  const absent = all.filter(({ name }) => !built.includes(name));
  const tables = absent.flatMap(({ name }) => tableNames(sourceFolder).map((table) => mangled(name, table)));
  const facts = all.map(({ name }) => `const bool has_${name} = ${built.includes(name)};`);
  return [
    `#include "${join(sourceFolder, "runtime", "sets.h")}"`,
    `namespace orchard {\n${facts.join("\n")}\n}`,
    ...(tables.length > 0 ? [`extern "C" {\n${tables.map((name) => `char ${name}[1] = {0};`).join("\n")}\n}`] : []),
    "",
  ].join("\n");
}
