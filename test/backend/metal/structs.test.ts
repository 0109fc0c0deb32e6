/**
 * Compares every parameter struct of a kernel, as TypeScript writes it, with the layout that the kernel compiler gives
 * to the kernel's source. Generated structs need no test: the types of their fields come from the description.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { kernelHeaders } from "../../../src/backend/metal/launch.ts";
import { type Struct, structs } from "../../../src/backend/metal/struct.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { metalKernel, output } from "../../../src/index.ts";

const snakeCase = (name: string) => name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();

/** Structs that a file declares by hand. */
const written = structs.filter(({ header }) => header === undefined);
const byFile = Map.groupBy(written, ({ file }) => file);

/**
 * The source with an additional kernel that writes, for each struct, its size, then each field's offset, size and
 * whether its type is the stated one.
 */
function probe(file: string, own: readonly Struct<never>[]): string {
  const source = file.endsWith(".metal")
    ? readFileSync(join(packageRoot, "kernels", file), "utf8")
    : `#include <metal_stdlib>\nusing namespace metal;\n#include "${file}"\n`;
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
  return `${source}
    template <typename A, typename B> struct ProbeSame { enum { value = 0 }; };
    template <typename A> struct ProbeSame<A, A> { enum { value = 1 }; };
    kernel void layout_probe(device uint *out [[buffer(0)]]) {
      ${numbers.map((expression, index) => `out[${index}] = ${expression};`).join("\n      ")}
    }`;
}

const described = (own: readonly Struct<never>[]) =>
  own.flatMap(({ name, metal }) => [
    [`${name}`, metal.size],
    ...Object.entries(metal.members).flatMap(
      ([
        field,
        {
          field: { size },
          offset,
        },
      ]) => [
        [`offset of ${name}.${field}`, offset],
        [`size of ${name}.${field}`, size],
        [`type of ${name}.${field}`, 1],
      ],
    ),
  ]) as [string, number][];

describe("structs of parameters match those in Metal", () => {
  test("parameter structs are described", () => {
    expect(written.length).toBeGreaterThan(1);
  });

  test.each([...byFile])("the struct %s has the compiler's layout", (file, own) => {
    const expected = described(own);
    const fileName = `probe of ${file}`; // a header must not include itself
    const options = { name: "layout_probe", source: probe(file, own), headers: kernelHeaders(), fileName };
    using kernel = metalKernel(options);
    const { outputs } = kernel.run({ out: output(Uint32Array, expected.length) }, { grid: 1 });
    const found = expected.map(([what], index) => [what, outputs.out[index]]);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
  });
});
