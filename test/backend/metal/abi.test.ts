import { describe, expect, test } from "bun:test";
import {
  Access,
  BUFFER_ZERO,
  declarations,
  GridKind,
  MAX_INLINE_BYTES,
  OPEN_EXACT,
  Storage,
  statusNames,
  VIEW_CONTIGUOUS,
} from "../../../src/backend/metal/abi.ts";
import { emptyStruct, readStruct, writeBlock } from "../../../src/backend/metal/block.ts";
import { type FieldType, layouts } from "../../../src/backend/metal/layouts.ts";
import { camelCase, readHeader } from "../../support/header.ts";

const header = readHeader();

/** The types for `bun:ffi` of C parameters: bytes are passed as views, and never as addresses. */
const ffiTypes: Record<string, string> = { uint64_t: "u64", uint32_t: "u32", int32_t: "i32" };
const ffiType = (cType: string) => (cType.includes("*") ? "buffer" : (ffiTypes[cType] ?? `unknown ${cType}`));

const fieldTypes: Record<string, string> = {
  uint32_t: "u32",
  int32_t: "i32",
  uint64_t: "u64",
  int64_t: "i64",
  uint8_t: "u8",
  orchard_span: "span",
};

describe("the declarations match orchard.h", () => {
  test("a test reads the declarations in orchard.h", () => {
    expect(header.functions.length).toBeGreaterThan(25);
    expect(header.structs.length).toBeGreaterThan(10);
  });

  test("every function is documented: a comment precedes it or its group", () => {
    const undocumented = header.functions.filter(
      ({ name }) => !new RegExp(`^//.*\\n(int32_t orchard_\\w+\\([^;]*;\\n)*int32_t ${name}\\(`, "m").test(header.text),
    );
    expect(undocumented.map(({ name }) => name)).toEqual([]);
  });

  test("orchard.h and TypeScript declare the same functions", () => {
    expect(Object.keys(declarations).sort()).toEqual(header.functions.map(({ name }) => name).sort());
  });

  for (const { name, returns, parameters } of header.functions) {
    test(name, () => {
      const declared = declarations[name as keyof typeof declarations];
      expect(declared as { args: readonly string[]; returns: string }).toEqual({
        args: parameters.map(ffiType),
        returns: ffiType(returns),
      } as never);
    });
  }

  test("orchard.h and TypeScript declare the same structs, except orchard_span, which is a field type", () => {
    const names = header.structs
      .map(({ name }) => camelCase(name.replace(/^orchard_/, "")))
      .filter((name) => name !== "span");
    expect(Object.keys(layouts).sort()).toEqual(names.sort());
  });

  for (const { name, fields } of header.structs.filter(({ name }) => name !== "orchard_span")) {
    test(name, () => {
      const layout = layouts[camelCase(name.replace(/^orchard_/, "")) as keyof typeof layouts];
      const wanted = fields.map(({ name: field, type, count }) => {
        const base = fieldTypes[type] ?? `unknown ${type}`;
        return [camelCase(field), (count === 1 ? base : `${base}[${count}]`) as FieldType];
      });
      expect(Object.entries(layout.fields)).toEqual(wanted as [string, FieldType][]);
    });
  }

  test("the sizes match the header's assertions", () => {
    const sizes = {
      openOptions: 80,
      bufferOptions: 32,
      bufferInfo: 48,
      view: 176,
      dispatch: 88,
      constant: 48,
      binding: 32,
    } as const;
    for (const [name, size] of Object.entries(sizes)) expect(layouts[name as keyof typeof sizes].size).toBe(size);
  });

  test("orchard.h and TypeScript declare the same constants", () => {
    const wanted: Record<string, number> = {
      ORCHARD_STORAGE_SHARED: Storage.shared,
      ORCHARD_STORAGE_PRIVATE: Storage.private,
      ORCHARD_ACCESS_READ: Access.read,
      ORCHARD_ACCESS_WRITE: Access.write,
      ORCHARD_ACCESS_READ_WRITE: Access.readwrite,
      ORCHARD_GRID_THREADS: GridKind.threads,
      ORCHARD_GRID_THREADGROUPS: GridKind.threadgroups,
      ORCHARD_OPEN_EXACT: OPEN_EXACT,
      ORCHARD_BUFFER_ZERO: BUFFER_ZERO,
      ORCHARD_VIEW_CONTIGUOUS: VIEW_CONTIGUOUS,
      ORCHARD_MAX_INLINE_BYTES: MAX_INLINE_BYTES,
    };
    for (const [name, value] of Object.entries(wanted))
      expect([name, header.constants.get(name)]).toEqual([name, value]);
    for (const [value, name] of statusNames.entries()) {
      const cName = `ORCHARD_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
      expect([cName, header.constants.get(cName)]).toEqual([cName, value]);
    }
  });
});

describe("descriptor blocks match the structs of orchard.h", () => {
  test("a struct array with text in its elements is laid out by offsets", () => {
    const block = writeBlock(layouts.libraryOptions, {
      source: "kernel",
      headers: {
        layout: layouts.namedText,
        items: [
          { name: "a.h", text: "A" },
          { name: "b.h", text: "BB" },
        ],
      },
    });
    const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
    const span = (at: number) => [view.getUint32(at, true), view.getUint32(at + 4, true)] as const;
    const text = ([offset, length]: readonly [number, number]) =>
      new TextDecoder().decode(block.subarray(offset, offset + length));
    expect(view.getUint32(0, true)).toBe(layouts.libraryOptions.size);
    expect(text(span(layouts.libraryOptions.offsets["source"] as number))).toBe("kernel");
    const [headers, length] = span(layouts.libraryOptions.offsets["headers"] as number);
    expect(length).toBe(32);
    expect([text(span(headers)), text(span(headers + 8)), text(span(headers + 16)), text(span(headers + 24))]).toEqual([
      "a.h",
      "A",
      "b.h",
      "BB",
    ]);
  });

  test("a block larger than the initial buffer keeps its contents", () => {
    const source = "x".repeat(100_000);
    const block = writeBlock(layouts.libraryOptions, { name: "n", source });
    expect(new TextDecoder().decode(block).includes(source)).toBe(true);
    expect(new DataView(block.buffer).getUint32(0, true)).toBe(layouts.libraryOptions.size);
  });

  test("numbers up to 2^53 are exact, and an unknown field is rejected", () => {
    const big = 2 ** 53 - 1;
    expect(readStruct<"length">(layouts.bufferOptions, writeBlock(layouts.bufferOptions, { length: big })).length).toBe(
      big,
    );
    expect(() => writeBlock(layouts.bufferOptions, { lenght: 4 })).toThrow("no field lenght");
    expect(emptyStruct(layouts.statistics).length).toBe(layouts.statistics.size);
  });
});
