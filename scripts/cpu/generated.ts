/** Writes the headers that the C++ of the cpu backend gets from TypeScript's descriptions. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { CpuCall, CpuCallDescription } from "../../src/backend/cpu/call.ts";
import type { Enumeration, Header } from "../../src/backend/enumeration.ts";
import { declaration } from "../../src/backend/fields.ts";
import { packageRoot } from "../../src/core/paths.ts";
import * as elementwise from "../../src/ops/elementwise/primitive.ts";
import * as reduction from "../../src/ops/reduction/primitive.ts";
import * as scan from "../../src/ops/scan/primitive.ts";

/** Enumerations whose names have formulas in `kernels/formulas`. */
const formulas = [elementwise.unaryOperations, elementwise.binaryOperations, elementwise.ternaryOperations];

/** A family whose blocks are generated. Other families declare their blocks, and a test compares them. */
interface Family {
  readonly name: string;
  /** The headers that declare the types of fields, from `native/.build/generated`. */
  readonly includes: readonly string[];
  readonly enumerations: readonly Enumeration[];
  readonly calls: readonly Pick<CpuCall<never>, "description">[];
}

const families: readonly Family[] = [
  {
    name: "elementwise",
    includes: ["../../cpu/elementwise/loop.h", ...formulas.map(({ header }) => header.name.replace("generated/", ""))],
    enumerations: [],
    calls: [elementwise.unaryCall, elementwise.binaryCall, elementwise.ternaryCall],
  },
  {
    name: "reduction",
    includes: ["../../cpu/nest.h"],
    enumerations: [reduction.reductions, reduction.derivatives],
    calls: [reduction.reduceCall, reduction.derivativeCall, reduction.selectCall],
  },
  {
    name: "scan",
    includes: ["../../cpu/slices.h"],
    enumerations: [scan.scans],
    calls: [scan.scanCall],
  },
];

/** The calls of the cpu dylib whose parameter blocks are generated. */
export const generatedCalls: ReadonlySet<string> = new Set(
  families.flatMap(({ calls }) => calls.map(({ description }) => description.name)),
);

/** Returns the name of a call's block in C++: `ReduceBlock` for `reduce`. */
export const blockOf = ({ name }: Pick<CpuCallDescription, "name">): string =>
  `${name[0].toUpperCase()}${name.slice(1)}Block`;

function blockText(description: CpuCallDescription): string {
  const fields = description.fields.map(({ name, field }) => `  ${declaration(field.type, name)}\n`);
  return `struct ${blockOf(description)} {\n${fields.join("")}};\n`;
}

function blocksHeader({ name, includes, enumerations, calls }: Family): Header {
  const parts = [
    ...enumerations.map(({ type, names }) => `ORCHARD_NAMES(${[type, ...names].join(", ")})\n`),
    ...calls.map(({ description }) => blockText(description)),
  ];
  const included = includes.map((file) => `#include "${file}"\n`).join("");
  return {
    name: `generated/${name}_blocks.h`,
    text: `#pragma once\n\n${included}\nnamespace orchard {\n\n${parts.join("\n")}\n}\n`,
  };
}

/** Returns the headers. Sources include them as `"../../.build/generated/reduction_blocks.h"`. */
export const generatedHeaders = (): readonly Header[] => [
  ...formulas.map(({ cpuHeader }) => cpuHeader),
  ...families.map(blocksHeader),
];

/** Writes the headers that changed into `native/.build/generated`, atomically. */
export function writeGenerated(root: string = packageRoot): void {
  for (const { name, text } of generatedHeaders()) {
    const path = join(root, "native", ".build", name);
    if (existsSync(path) && readFileSync(path, "utf8") === text) continue;
    mkdirSync(dirname(path), { recursive: true });
    const draft = `${path}.${process.pid}`;
    writeFileSync(draft, text);
    renameSync(draft, path);
  }
}
