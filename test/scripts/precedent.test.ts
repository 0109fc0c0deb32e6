/**
 * The check of precedents reports constructs that are planted in our sources, with their lines, and nothing in the real
 * sources.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { readCorpus } from "../../scripts/precedent/corpus.ts";
import { ourSources, ourUses, type Sources } from "../../scripts/precedent/ours.ts";
import { arguedFile, precedentProblems, readArgued, withoutPrecedent } from "../../scripts/precedent/precedent.ts";
import type { SourceFile } from "../../scripts/precedent/preprocessor.ts";
import { languages, Table, tableFile } from "../../scripts/precedent/table.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { repeats } from "../support/repeats.ts";
import { type Draw, kernelPlants, type Planted, swiftPlants } from "./precedent_plants.ts";

const sources = await ourSources();
const present = withoutPrecedent(sources);
const argued = readArgued(readFileSync(join(packageRoot, arguedFile), "utf8"));
const isArgued = new Set(argued.map(({ construct }) => construct));
const numRuns = repeats({ usual: 8, all: 60 });

/** Numbers from 0 up to 1, drawn once and then used one after the other. */
const draws = fc.infiniteStream(fc.nat(9999)).map(
  (stream): Draw =>
    () =>
      stream.next().value! / 10_000,
);

/** The places of the planted construct among those without a precedent. */
function found({ construct }: Planted, planted: Sources): string[] {
  const all = [...withoutPrecedent(planted)].filter(([each]) => !isArgued.has(each));
  return all.filter(([each]) => each.includes(construct)).flatMap(([, places]) => [...places]);
}

/**
 * The sources with one file changed. Of the kernels it has only the changed one, since kernels do not depend on each
 * other.
 */
const only = (file: SourceFile): Sources =>
  file.path.endsWith(".swift")
    ? { ...sources, kernels: [], others: [], swift: sources.swift.map((own) => (own.path === file.path ? file : own)) }
    : { ...sources, kernels: [file], others: [], swift: [] };

test("nothing in our sources is without a precedent or a reason", () => {
  expect(precedentProblems(present, argued)).toEqual([]);
});

describe("the error names the line of a construct", () => {
  test.each(Object.entries(kernelPlants))("the error names %s in a kernel", (_, plant) => {
    const files = sources.kernels;
    fc.assert(
      fc.property(draws, (draw) => {
        const planted = plant(files, draw);
        expect(found(planted, only(planted.file))).toContain(`${planted.file.path}:${planted.line}`);
      }),
      { numRuns, seed: 1 },
    );
  });

  test("the error names one in a header, which a kernel includes", () => {
    const path = "common/bits.h";
    const file = { path: `kernels/${path}`, text: sources.headers[path] };
    const planted = kernelPlants["as_type as a member of a namespace"]([file], () => 0.5);
    const kernels = sources.kernels.filter((kernel) => kernel.path === "kernels/elementwise/binary.metal");
    const changed = { ...sources, kernels, headers: { ...sources.headers, [path]: planted.file.text } };
    expect(found(planted, changed)).toEqual([`${planted.file.path}:${planted.line}`]);
  });

  test.each(Object.entries(swiftPlants))("the error names %s in Swift", (_, plant) => {
    const files = sources.swift.filter(({ text }) => !text.includes("#if canImport(MetalRuntime)")); // absent on Macs
    fc.assert(
      fc.property(draws, (draw) => {
        const planted = plant(files, draw);
        expect(found(planted, only(planted.file))).toContain(`${planted.file.path}:${planted.line}`);
      }),
      { numRuns, seed: 2 },
    );
  });

  test("the error names one in a program inside a string of another file", () => {
    const path = "swift/Sources/OrchardMetal/Capabilities.swift";
    const own = sources.others.find((file) => file.path === path)!;
    const text = own.text.replace("simd_sum(lane)", "simd_summe(lane)");
    const line = text.slice(0, text.indexOf("simd_summe")).split("\n").length;
    const planted = { file: { path, text }, line, construct: "name simd_summe" };
    expect(found(planted, { ...sources, kernels: [], others: [planted.file] })).toEqual([`${path}:${line}`]);
  });
});

describe("the list of reasons", () => {
  test("the list of reasons has at most 20 rows, each with a reason", () => {
    const many = Array.from({ length: 21 }, (_, index) => ({ construct: `keyword k${index}`, reason: "none" }));
    expect(precedentProblems(present, [...argued, ...many])).toContain(
      `${arguedFile}: expected at most 20 constructs, got ${argued.length + 21}`,
    );
    expect(argued.filter(({ reason }) => reason.length < 20)).toEqual([]);
  });

  test("the list of reasons has no unnecessary row", () => {
    const problems = precedentProblems(present, [...argued, { construct: "keyword goto", reason: "none" }]);
    expect(problems.filter((problem) => !problem.includes("at most 20"))).toEqual([
      `${arguedFile}: is no longer needed: keyword goto`,
    ]);
  });

  test("the list requires a reason for each row", () => {
    for (const { construct } of argued) {
      const others = argued.filter((own) => own.construct !== construct);
      for (const list of [others, [...others, { construct, reason: "" }]])
        expect(precedentProblems(present, list)[0]).toEndWith(`: no other project has: ${construct}`);
    }
  });

  test("the list states what verifies each row on a Mac", () => {
    const rows = readFileSync(join(packageRoot, arguedFile), "utf8").split("\n");
    const wrong = rows.filter((row) => row && !row.startsWith("# ") && !/^[^\t]+\t[^\t]{20,}\t[^\t]{10,}$/.test(row));
    expect(wrong).toEqual([]);
  });
});

describe("a corpus counts projects by construct", () => {
  const { path: root } = testFolder("precedent");

  function project(name: string, files: Record<string, string>): string {
    for (const [path, text] of Object.entries({ ".commit": "abc\n", ...files })) {
      mkdirSync(dirname(join(root, name, path)), { recursive: true });
      writeFileSync(join(root, name, path), text);
    }
    return join(root, name);
  }

  const kernel = (body: string) =>
    `#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device float *x [[buffer(0)]]) { ${body} }\n`;
  const read = (...folders: string[]) => readCorpus(folders, ourUses({ ...sources, kernels: [], swift: [] }));

  test("a corpus counts a project once for each construct, and a file that two projects share once", () => {
    const one = project("a/one", { "x.metal": kernel("x[0] = fabs(x[1]);"), "y.metal": kernel("x[1] = fabs(x[2]);") });
    const copy = project("b/copy", { "z.metal": kernel("x[0]  =  fabs(x[1]);") });
    const two = project("c/two", { "x.metal": kernel("x[0] = fabs(x[3]) + 1.0h;") });
    const { origins, counts } = read(one, copy, two).msl;
    expect(origins).toEqual(["a/one", "c/two"].map((name) => ({ project: name, version: "abc" })));
    expect(counts.get("call fabs(float)")).toBe(2);
    expect(counts.get("literal float 1.1 h")).toBe(1);
  });

  test("a corpus leaves out a project's own names, and follows its includes", () => {
    const own = project("d/own", {
      "include/own.h": "#pragma once\ntemplate <typename T> T own_function(T x) { return metal::exp(x); }\n",
      "src/x.metal": `#include "own.h"\n${kernel("x[0] = own_function(x[1]);")}`,
    });
    const { counts } = read(own).msl;
    expect([...counts.keys()].filter((construct) => construct.includes("own_"))).toEqual([]);
    expect(counts.get("name metal::exp")).toBe(1);
  });

  test("a corpus reads programs in strings, Swift, and calls of Metal's interface from other languages", () => {
    const host = project("e/host", {
      "x.mm": `id<MTLBuffer> b = [device newBufferWithLength:4 options:MTLResourceStorageModeShared];
        const char* source = R"(${kernel("x[0] = rint(x[1]);")})";`,
      "y.swift": "let buffer = device.makeBuffer(length: 4, options: .storageModeShared)\nbuffer.label = name\n",
    });
    const { msl, swift } = read(host);
    expect(msl.counts.get("call rint(float)")).toBe(1);
    for (const construct of ["type MTLBuffer", "member storageModeShared", "method makeBuffer(length:options:)"])
      expect([construct, swift.counts.get(construct)]).toEqual([construct, 1]);
  });

  test("a corpus must state the version of each project", () => {
    mkdirSync(join(root, "f", "none"), { recursive: true });
    expect(() => read(join(root, "f", "none"))).toThrow("has no version");
    expect(() => read(join(root, "missing"))).toThrow("expected the folder of a project");
  });
});

describe("a construct has a precedent in the corpus", () => {
  test.each([
    ["name fabs", ["name metal::fabs"], true],
    ["name metal::as_type", ["name as_type", "keyword as_type"], false],
    ["call f(_)", ["call f(float)"], true],
    ["call f(float)", ["call f(_)"], false],
    ["call f(float)", ["call f(T)"], true],
    ["call f(ulong)", ["call f(T)"], false],
    ["call f(T4)", ["call f(half4)"], true],
    ["call f(float, float)", ["call f(float)"], false],
    ["convert as_type<T4>(uint2)", ["convert as_type<half4>(uint2)"], true],
    ["convert as_type<half2>(uint2)", ["convert as_type<half4>(uint2)"], false],
    ["member float4", ["member MTLDataType.float4"], true],
    ["member MTLDataType.float4", ["member float4"], false],
    ["function f(a:_:)", ["method f(a:)"], true],
    ["method f(a:)", ["function f(a:)"], false],
  ])("the precedent of %s is %j: %p", (construct, known, is) => {
    expect(new Table(known).has(construct)).toBe(is);
  });

  test("precedents are in a sorted table, which names each project with its version", () => {
    for (const language of languages) {
      const lines = readFileSync(tableFile(language), "utf8").trimEnd().split("\n");
      const rows = lines.filter((line) => !line.startsWith("# "));
      expect(rows).toEqual(rows.toSorted());
      expect(rows.every((row) => /^[^\t]+\t[1-9]\d*$/.test(row))).toBe(true);
      expect(lines.filter((line) => /^# \S+\/\S+ \S/.test(line)).length).toBeGreaterThan(20);
    }
  });
});
