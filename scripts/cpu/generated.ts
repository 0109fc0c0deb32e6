/**
 * Writes the headers that the C++ of the cpu backend gets from TypeScript's descriptions: the parameter block of every
 * call, and the enumerations that blocks name.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CpuCallDescription, cpuCalls } from "../../src/backend/cpu/call.ts";
import { type Enumeration, enumerations, type Header } from "../../src/backend/enumeration.ts";
import { type CpuField, declaration, snakeCase, templateOf } from "../../src/backend/fields.ts";
import { packageRoot } from "../../src/core/paths.ts";
import "../../src/index.ts"; // describes every call
import { binaryOperations, ternaryOperations, unaryOperations } from "../../src/ops/elementwise/primitive.ts";

/** Enumerations whose names have formulas in `kernels/formulas`. */
const formulas: readonly Enumeration[] = [unaryOperations, binaryOperations, ternaryOperations];

/** Consecutive fields that several blocks have in common, which C++ reads through one base struct. */
interface Head {
  readonly first: string;
  readonly last: string;
  readonly calls: readonly string[];
}

/** Heads by their names in C++. Their fields come from the descriptions of the calls. */
const heads: Readonly<Record<string, Head>> = {
  AttentionStepHead: { first: "dtype", last: "headStrides", calls: ["attentionStep", "attentionStepMany"] },
  BagHead: {
    first: "dtype",
    last: "hasFactors",
    calls: ["embeddingBag", "embeddingBagGradient", "embeddingBagFactors"],
  },
  BatchNormHead: { first: "dtype", last: "eps", calls: ["batchNorm", "batchNormGradient"] },
  ClassesHead: {
    first: "dtype",
    last: "factorSum",
    calls: ["crossEntropy", "crossEntropySum", "crossEntropyGradient"],
  },
  FoldHead: { first: "dtype", last: "offsets", calls: ["fold", "unfold"] },
  NormalizationHead: { first: "dtype", last: "isPresent", calls: ["normalize", "normalizeGradient"] },
  PoolingHead: { first: "dtype", last: "before", calls: ["maxPool", "maxPoolGradient"] },
  ProductRows: {
    first: "dtype",
    last: "isFast",
    calls: ["quantizedMatmul", "quantizedSwiglu", "quantizedProjections"],
  },
  WeightHead: { first: "packing", last: "offsets", calls: ["dequantize", "quantizedMatmul", "quantizedSwiglu"] },
};

/** A member of a struct, with its offset in doubles. */
interface Member {
  readonly name: string;
  readonly field: CpuField<never>;
  readonly offset: number;
}

interface StructText {
  readonly name: string;
  readonly bases: readonly string[];
  /** All members, those of the bases included. */
  readonly members: readonly Member[];
  readonly declared: readonly Member[];
  /** Length in doubles. */
  readonly length: number;
}

/** Returns the name of a call's block in C++: `ReduceBlock` for `reduce`. */
export const blockOf = ({ name }: Pick<CpuCallDescription, "name">): string =>
  `${name[0].toUpperCase()}${name.slice(1)}Block`;

/** Returns the generated header of a C++ type without template arguments. */
export const headerOf = (type: string): string => `generated/${snakeCase(type)}.h`;

const lengthOf = (members: readonly Member[]): number => members.reduce((sum, { field }) => sum + field.length, 0);

/** Returns the members of a head in a call's block; none if the block does not have the head. */
function membersOfHead(head: Head, { name, fields }: CpuCallDescription): readonly Member[] {
  if (!head.calls.includes(name)) return [];
  const [first, last] = [head.first, head.last].map((wanted) => fields.findIndex((field) => field.name === wanted));
  if (first < 0 || last < first) throw new Error(`the block of ${name} has no fields ${head.first} … ${head.last}`);
  return fields.slice(first, last + 1);
}

function blockStruct(call: CpuCallDescription): StructText {
  const members = call.fields;
  const own = Object.entries(heads)
    .map(([name, head]) => ({ name, members: membersOfHead(head, call) }))
    .filter((head) => head.members.length > 0)
    .sort((a, b) => a.members[0].offset - b.members[0].offset);
  const inherited = own.flatMap((head) => head.members);
  if (inherited.some((member, index) => member !== members[index]))
    throw new Error(`the heads of ${call.name} are not its first fields`);
  const declared = members.slice(inherited.length);
  return { name: blockOf(call), bases: own.map(({ name }) => name), members, declared, length: call.length };
}

/** Returns the struct of a head, after checking that its fields are the same in all blocks. */
function headStruct(name: string, head: Head): StructText {
  const all = head.calls.map((call) => {
    const members = membersOfHead(head, cpuCalls.get(call)!);
    return members.map((member) => ({ ...member, offset: member.offset - members[0].offset }));
  });
  const rows = all.map((members) => members.map((member) => declaration(member.field.type, member.name)).join(" "));
  if (rows.some((row) => row !== rows[0])) throw new Error(`calls declare different fields of ${name}`);
  return { name, bases: [], members: all[0], declared: all[0], length: lengthOf(all[0]) };
}

/** Returns the fields with members in a field, the innermost first: `NestBlock<2>`, then `LoopBlock<2>`. */
const nestedIn = (field: CpuField<never>): CpuField<never>[] =>
  field.members ? [...Object.values(field.members).flatMap((member) => nestedIn(member.field)), field] : [];

const fieldOf = ({ field }: Member): CpuField<never> => field;

const placed = ({ members = {} }: CpuField<never>): Member[] =>
  Object.entries(members).map(([name, member]) => ({ name, ...member }));

/** Returns a template of the number of operands, from an instance. */
function templateHeader(name: string, instance: CpuField<never>): Header {
  const rows = placed(instance).map((member) => `  ${declaration(templateOf(member.field), member.name)}\n`);
  const includes = includesOf(placed(instance).map(({ field }) => headerOfField(field)));
  const text = `template <int operands> struct ${name} {\n${rows.join("")}};\n`;
  return { name: headerOf(name), text: `#pragma once\n\n${includes}\nnamespace orchard {\n\n${text}\n}\n` };
}

/** Returns the headers of structs that are fields of blocks, such as `NestBlock<2>`. */
function nestedHeaders(): Header[] {
  const fields = [...cpuCalls.values()].flatMap((call) => call.fields.flatMap(({ field }) => nestedIn(field)));
  const byName = Map.groupBy(fields, ({ type }) => type.replace(/<.*/, ""));
  return [...byName].flatMap(([name, instances]) => {
    if (name in heads) return [];
    const headers = instances.map((instance) => templateHeader(name, instance));
    if (headers.some(({ text }) => text !== headers[0].text)) throw new Error(`instances of ${name} differ`);
    return headers.slice(0, 1);
  });
}

/** The types of fields that `native/cpu/block.h` declares. */
const scalars = ["DTypeField", "Flag", "Real", "Whole", "WideWord", "Word"];

/** Returns the file of a type's header. */
const fileOf = (type: string): string => headerOf(type).replace("generated/", "");

/** Returns the header that a field's type needs. */
function headerOfField({ type }: CpuField<never>): string {
  const [, base, argument] = /^(\w+)(?:<(\w+)>)?/.exec(type)!;
  if (scalars.includes(base)) return "../../cpu/block.h";
  return fileOf(base === "Name" ? argument : base);
}

/** Checks that the compiler lays a struct out as TypeScript writes it: in doubles, without gaps. */
const layoutChecks = (name: string, members: readonly Member[], length: number): string[] => [
  `static_assert(sizeof(${name}) == ${length} * sizeof(double));\n`,
  ...members.map(
    (member) => `static_assert(offsetof(${name}, ${snakeCase(member.name)}) == ${member.offset} * sizeof(double));\n`,
  ),
];

const includesOf = (files: readonly string[]): string =>
  [...new Set(["../../cpu/block.h", ...files])].map((file) => `#include "${file}"\n`).join("");

function structHeader({ name, bases, members, declared, length }: StructText): Header {
  const rows = declared.map((member) => `  ${declaration(member.field.type, member.name)}\n`).join("");
  const nested = declared.flatMap(({ field }) => nestedIn(field));
  const checks = [
    ...nested.flatMap((field) => layoutChecks(field.type, placed(field), field.length)),
    ...layoutChecks(name, members, length),
  ];
  const includes = includesOf([...bases.map(fileOf), ...declared.map(({ field }) => headerOfField(field))]);
  // A struct with a base has a defined layout, but offsetof of it is only conditionally supported.
  const quiet = '#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "-Winvalid-offsetof"\n';
  return {
    name: headerOf(name),
    text:
      `#pragma once\n\n${includes}\n#include <cstddef>\n\nnamespace orchard {\n\n` +
      `struct ${name}${bases.length > 0 ? ` : ${bases.join(", ")}` : ""} {\n${rows}};\n\n` +
      `${quiet}${[...new Set(checks)].join("")}#pragma GCC diagnostic pop\n\n}\n`,
  };
}

/** The header of an enumeration that a block names. */
function namesHeader({ type, names, cpuHeader }: Enumeration): Header {
  if (formulas.some((known) => known.type === type)) return cpuHeader;
  const list = [type, ...names].join(", ");
  return {
    name: headerOf(type),
    text: `#pragma once\n\n#include "../../cpu/names.h"\n\nnamespace orchard {\n\nORCHARD_NAMES(${list})\n\n}\n`,
  };
}

/** Returns the enumerations that blocks name. */
export function namedEnumerations(): readonly Enumeration[] {
  const fields = [...cpuCalls.values()].flatMap((call) => call.fields.map(({ field }) => field));
  const all = fields.flatMap((field) => [field, ...nestedIn(field).flatMap((each) => placed(each).map(fieldOf))]);
  const named = new Set(all.flatMap(({ type }) => /^Name<(\w+)>/.exec(type)?.[1] ?? []));
  return enumerations().filter(({ type }) => named.has(type));
}

/** Returns the headers. Sources include them as `"../../.build/generated/scan_block.h"`. */
export const generatedHeaders = (): readonly Header[] => [
  ...namedEnumerations().map(namesHeader),
  ...nestedHeaders(),
  ...Object.entries(heads).map(([name, head]) => structHeader(headStruct(name, head))),
  ...[...cpuCalls.values()].map((call) => structHeader(blockStruct(call))),
];

const textAt = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

/** Writes the headers that changed into `native/.build/generated`, atomically, and removes all others. */
export function writeGenerated(root: string = packageRoot): void {
  const folder = join(root, "native", ".build", "generated");
  mkdirSync(folder, { recursive: true });
  const headers = new Map(generatedHeaders().map(({ name, text }) => [name.replace("generated/", ""), text]));
  for (const name of readdirSync(folder)) if (!headers.has(name) && name.endsWith(".h")) rmSync(join(folder, name));
  for (const [name, text] of headers) {
    const path = join(folder, name);
    if (textAt(path) === text) continue;
    const draft = `${path}.${process.pid}`;
    writeFileSync(draft, text);
    renameSync(draft, path);
  }
}
