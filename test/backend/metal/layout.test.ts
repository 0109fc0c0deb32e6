/** Parameter structs of Metal kernels: all are generated, and the kernel compiler lays them out as the host does. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { snakeCase } from "../../../src/backend/fields.ts";
import { kernelHeaders } from "../../../src/backend/metal/launch.ts";
import { type Struct, structHeaders, structs } from "../../../src/backend/metal/struct.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { metalKernel, output } from "../../../src/index.ts";

const described = structs();

/** Structs that the host writes in Swift. */
const ofRuntime = ["StridedCopy"];

/** Returns the structs that functions read from constant memory. */
const structsIn = (text: string): string[] =>
  [...text.matchAll(/\bconstant (?!u?(?:int|long)\b)(\w+)(?:<\w+>)? &/g)].map(([, name]) =>
    name === "LoopNest" ? "Nest" : name,
  );

/** Returns the files that a file includes, and itself. */
function closureOf(name: string, headers: Record<string, string>, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const [, included] of headers[name].matchAll(/^#include "([^"]+)"/gm)) closureOf(included, headers, seen);
  return seen;
}

describe("every parameter struct is generated", () => {
  const folder = join(packageRoot, "kernels");
  const kernels = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".metal"));
  const texts = {
    ...kernelHeaders(),
    ...Object.fromEntries(kernels.map((name) => [name, readFileSync(join(folder, name), "utf8")])),
  };

  test.each(kernels)("each struct that a kernel of %s reads is in a generated header that it includes", (kernel) => {
    const files = [...closureOf(kernel, texts)];
    const own = files.flatMap((name) => structsIn(texts[name])).filter((name) => !ofRuntime.includes(name));
    expect(own.filter((name) => !files.includes(`generated/${snakeCase(name)}.h`))).toEqual([]);
  });

  test("a struct of a kernel that is not described is found", () => {
    expect(structsIn("kernel void f(constant Hand &hand [[buffer(0)]]) {}")).toEqual(["Hand"]);
  });

  test("all instances of a template have one text", () => {
    for (const [name, same] of Map.groupBy(structHeaders(), (header) => header.name))
      expect([name, new Set(same.map(({ text }) => text)).size]).toEqual([name, 1]);
  });
});

/** A kernel that writes each struct's size, then each field's offset, size, and whether its type is the stated one. */
function probe(own: readonly Struct<never>[]): string {
  const headers = new Set(own.map(({ header }) => `#include "${header.name}"\n`));
  const numbers = own.flatMap(({ name, metal }) => [
    `uint(sizeof(${name}))`,
    ...Object.entries(metal.members).flatMap(
      ([
        field,
        {
          field: { type },
        },
      ]) => {
        const member = `${name}::${snakeCase(field)}`;
        const offset = `uint(__builtin_offsetof(${name}, ${snakeCase(field)}))`;
        return [offset, `uint(sizeof(${member}))`, `uint(ProbeSame<decltype(${member}), ${type}>::value)`];
      },
    ),
  ]);
  return `#include <metal_stdlib>
    using namespace metal;
    ${[...headers].join("")}
    template <typename A, typename B> struct ProbeSame { enum { value = 0 }; };
    template <typename A> struct ProbeSame<A, A> { enum { value = 1 }; };
    kernel void layout_probe(device uint *out [[buffer(0)]]) {
      ${numbers.map((expression, index) => `out[${index}] = ${expression};`).join("\n      ")}
    }`;
}

const expectedOf = (own: readonly Struct<never>[]): (readonly [string, number])[] =>
  own.flatMap(({ name, metal }) => [
    [name, metal.size] as const,
    ...Object.entries(metal.members).flatMap(
      ([
        field,
        {
          field: { size },
          offset,
        },
      ]) => [
        [`offset of ${name}.${field}`, offset] as const,
        [`size of ${name}.${field}`, size] as const,
        [`type of ${name}.${field}`, 1] as const,
      ],
    ),
  ]);

test("the kernel compiler lays every struct out as the host writes it", () => {
  expect(described.length).toBeGreaterThan(50);
  const expected = expectedOf(described);
  const options = { name: "layout_probe", source: probe(described), headers: kernelHeaders() };
  using kernel = metalKernel(options);
  const { outputs } = kernel.run({ out: output(Uint32Array, expected.length) }, { grid: 1 });
  const found = expected.map(([what], index) => [what, outputs.out[index]]);
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
});

test("a struct of another size than the host's does not compile", () => {
  const [{ name, text }] = structHeaders().filter((header) => header.text.includes("static_assert"));
  const source = `#include <metal_stdlib>\nusing namespace metal;\n#include "common/loop.h"\n#include "${name}"\n`;
  const headers = { ...kernelHeaders(), [name]: text.replace("{\n", "{\n    long added;\n") };
  expect(() => metalKernel({ name: "none", source: `${source}kernel void none() {}`, headers })).toThrow(
    "the host writes",
  );
});
