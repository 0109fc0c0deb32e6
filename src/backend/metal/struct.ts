/** Parameter structs of the built-in kernels, in C's layout. */
import type { Header } from "../enumeration.ts";
import { declaration, type Field, type MetalField, type ValuesOf } from "../fields.ts";

/** A struct that a kernel declares and the host writes. */
export interface Struct<Values> extends Field<Values> {
  readonly metal: MetalField<Values> & Required<Pick<MetalField<Values>, "members">>;
  /** The name in the source. */
  readonly name: string;
  /** The file in `kernels/` that declares it, or its generated header. */
  readonly file: string;
  /** The header, if it is generated. */
  readonly header: Header | undefined;
  /** Returns the bytes of a struct with these values. Omitted array elements are 0. */
  bytes(values: Values): Uint8Array;
}

const defined: Struct<never>[] = [];

/** All described structs. */
export const structs: readonly Struct<never>[] = defined;

/** Returns the generated headers of structs. */
export const structHeaders = (): Header[] => defined.flatMap(({ header }) => header ?? []);

/**
 * Describes a struct of a kernel. Fields are camelCase here and snake_case in the kernel.
 *
 * @param file the header to generate, such as `"generated/select_at.h"`; or the file in `kernels/` that declares the
 *   struct, and then a test compares every offset with the kernel compiler's
 * @example
 * const fields = { loop: loopNest, key: array(word, 2), scale: real };
 * const parameters = struct("Dropout", "activation/dropout.metal", fields);
 * parameters.bytes({ loop, key: [1, 2], scale: 2 });
 */
export function struct<Fields extends Readonly<Record<string, Field<never>>>>(
  name: string,
  file: string,
  fields: Fields,
): Struct<ValuesOf<Fields>> {
  let layout: Struct<ValuesOf<Fields>>["metal"] | undefined;
  const result: Struct<ValuesOf<Fields>> = {
    name,
    file,
    get metal() {
      layout ??= layOut(name, fields); // on first use, since a program uses few of the structs that it imports
      return layout;
    },
    get header() {
      return file.startsWith("generated/") ? { name: file, text: textOf(name, result.metal.members) } : undefined;
    },
    bytes(values) {
      const buffer = new ArrayBuffer(result.metal.size);
      result.metal.write(new DataView(buffer), 0, values);
      return new Uint8Array(buffer);
    },
  };
  defined.push(result);
  return result;
}

/** The struct for Metal Shading Language. */
function textOf(name: string, members: Struct<never>["metal"]["members"]): string {
  const rows = Object.entries(members).map(([field, { field: member }]) => `    ${declaration(member.type, field)}\n`);
  return `struct ${name} {\n${rows.join("")}};\n`;
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
