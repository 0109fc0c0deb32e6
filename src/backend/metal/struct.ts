/** Parameter structs of the built-in kernels, in C's layout. */
import type { Header } from "../enumeration.ts";
import { declaration, type Field, type MetalField, snakeCase, templateOf, type ValuesOf } from "../fields.ts";

/** A struct that a kernel reads and the host writes. */
export interface Struct<Values> extends Field<Values> {
  readonly metal: MetalField<Values> & Required<Pick<MetalField<Values>, "members">>;
  /** The name in the source. */
  readonly name: string;
  /** The header that declares it: `generated/select_at.h` for `SelectAt`. */
  readonly header: Header;
  /** Returns the bytes of a struct with these values. Omitted array elements are 0. */
  bytes(values: Values): Uint8Array;
}

const defined = new Map<string, Struct<never>>();

/** Returns all described structs. */
export const structs = (): readonly Struct<never>[] => [...defined.values()];

/** Returns the headers of structs. The instances of a template have the same header. */
export const structHeaders = (): Header[] => structs().map(({ header }) => header);

/**
 * Describes a struct of a kernel, and its generated header. Fields are camelCase here and snake_case in the kernel. A
 * name such as `Nest<2>` describes an instance of a template of the number of operands.
 *
 * @example
 * const fields = { loop: loopNest, key: array(word, 2), scale: real };
 * const parameters = struct("Dropout", fields); // kernels include "generated/dropout.h"
 * parameters.bytes({ loop, key: [1, 2], scale: 2 });
 */
export function struct<Fields extends Readonly<Record<string, Field<never>>>>(
  name: string,
  fields: Fields,
): Struct<ValuesOf<Fields>> {
  if (defined.has(name)) throw new TypeError(`the struct ${name} is defined twice`);
  let layout: Struct<ValuesOf<Fields>>["metal"] | undefined;
  let header: Header | undefined;
  const result: Struct<ValuesOf<Fields>> = {
    name,
    get metal() {
      layout ??= layOut(name, fields); // on first use, since a program uses few of the structs that it imports
      return layout;
    },
    get header() {
      header ??= headerOf(result.metal);
      return header;
    },
    bytes(values) {
      const buffer = new ArrayBuffer(result.metal.size);
      result.metal.write(new DataView(buffer), 0, values);
      return new Uint8Array(buffer);
    },
  };
  defined.set(name, result);
  return result;
}

/** The header for Metal Shading Language. The compiler checks the size of a struct that is not a template. */
function headerOf({ type, size, members }: Struct<never>["metal"]): Header {
  const [, name, operands] = /^(\w+)(?:<(\d+)>)?$/.exec(type)!;
  const typeOf = (field: MetalField<never>) => (operands === undefined ? field.type : templateOf(field));
  const rows = Object.entries(members).map(([name, { field }]) => `    ${declaration(typeOf(field), name)}\n`);
  const text = `struct ${name} {\n${rows.join("")}};\n`;
  return {
    name: `generated/${snakeCase(name)}.h`,
    text:
      operands === undefined
        ? `${text}static_assert(sizeof(${name}) == ${size}, "the host writes ${size} bytes");\n`
        : `template <int operands> ${text}`,
  };
}

function layOut<Values>(
  name: string,
  fields: Readonly<Record<string, Field<never>>>,
): MetalField<Values> & Required<Pick<MetalField<Values>, "members">> {
  const members: Record<string, { field: MetalField<never>; offset: number }> = {};
  let end = 0;
  let alignment = 1;
  for (const [field, { metal }] of Object.entries(fields)) {
    if (!metal) throw new TypeError(`field ${field} of the struct ${name} is only for cpu`);
    const offset = Math.ceil(end / metal.alignment) * metal.alignment;
    members[field] = { field: metal, offset };
    end = offset + metal.size;
    alignment = Math.max(alignment, metal.alignment);
  }
  const placed = Object.entries(members);
  const write = (view: DataView, at: number, values: Values): void => {
    for (const [field, { field: member, offset }] of placed)
      member.write(view, at + offset, values[field as keyof Values] as never);
  };
  return { type: name, size: Math.ceil(end / alignment) * alignment, alignment, write, members };
}
