/** Describes matrix products, whose epilogues run on parts of the result while these are in a cache. */
import { type Link, nestIn, product, stepOf } from "./links.ts";
import type { RecordedCall } from "./recording.ts";

/** Returns a product as the start of a chain whose units are the rows of its result; undefined for other calls. */
export function productLink({ block, call, operands }: RecordedCall): Link | undefined {
  const { name, fields } = call.description;
  if (name !== "matmul" || call.rows > 0) return undefined;
  const at = (field: string): number => fields.find((each) => each.name === field)!.offset;
  const out = operands[3];
  const read = operands.slice(0, block[at("hasInput")] === 0 ? 2 : 3);
  if (out?.source !== "computed" || read.includes(out)) return undefined;
  const [rows, columns] = [block[at("m")], block[at("n")]];
  const batch = nestIn(block, at("batch"), 4);
  const shape = [...batch.shape, rows, columns];
  const strides = [...batch.strides[3], block[at("rowStrides") + 3], block[at("columnStrides") + 3]];
  if (columns < 2 || stepOf(shape, strides) !== 1) return undefined;
  const offset = (operand: number): number => at("offsets") + operand;
  return {
    units: product(shape) / columns,
    width: columns,
    isThin: false,
    count: 0,
    result: 3,
    operands: operands.map((_, index) => {
      return { offset: offset(index), start: block[offset(index)], step: index === 3 ? columns : 0 };
    }),
    changes: [],
  };
}
