import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRange } from "../indexing/range.reference.ts";
import { offsetsError } from "./offsets.ts";
import type { BagAttributes } from "./primitive.ts";

/** An index that is not padding: its row, its position among all indices, and its factor. */
interface Member {
  readonly row: number;
  readonly number: number;
  readonly factor: number;
}

/** Returns the members of each bag. */
function bagsOf(
  [indices, offsets, factors]: readonly Tensor[],
  { bags, length, padding, hasFactors }: BagAttributes,
): Member[][] {
  const rows = toIntegers(indices).map(Number);
  const values = hasFactors ? toNumbers(factors) : undefined;
  const ends =
    length === null ? toIntegers(offsets).map(Number) : Array.from({ length: bags + 1 }, (_, at) => at * length);
  return Array.from({ length: bags }, (_, bag) =>
    rows
      .slice(ends[bag], ends[bag + 1])
      .map((row, at): Member => ({ row, number: ends[bag] + at, factor: values?.[ends[bag] + at] ?? 1 }))
      .filter(({ row }) => row !== padding),
  );
}

const rowsOf = (matrix: Tensor): readonly (readonly number[])[] => {
  const values = [...toNumbers(matrix)];
  const [count, width] = tupleOf(matrix.shape, 2);
  return Array.from({ length: count }, (_, row) => values.slice(row * width, (row + 1) * width));
};

export const bagReference: Implementation<BagAttributes, readonly Tensor[], [Tensor, Tensor, Tensor]> = {
  run({ operation, inputs, outputs: [output, counts, best], attributes }) {
    const [indices, offsets, , table] = tupleOf(inputs, 4);
    checkRange({ operation, index: indices, size: attributes.rows });
    if (attributes.length === null) checkOffsets(offsets, indices.size);
    const bags = bagsOf(inputs, attributes);
    const rows = rowsOf(table);
    const columns = Array.from({ length: table.shape[1] }, (_, column) => column);
    if (best) {
      const found = bags.flatMap((bag) => columns.map((column) => largestOf(bag, rows, column)));
      store(
        output,
        found.map((member) => (member ? rows[member.row][Number(member.column)] : 0)),
      );
      store(
        best,
        found.map((member) => BigInt(member?.number ?? -1)),
      );
    } else {
      const share = (bag: readonly Member[]) => (attributes.mode === "mean" ? 1 / Math.max(bag.length, 1) : 1);
      const sumOf = (bag: readonly Member[], column: number) =>
        bag.reduce((sum, { row, factor }) => sum + factor * rows[row][column], 0);
      store(
        output,
        bags.flatMap((bag) => columns.map((column) => sumOf(bag, column) * share(bag))),
      );
    }
    store(
      counts,
      bags.map(({ length }) => length),
    );
  },
};

/** Returns the member with the largest element in a column: the first NaN, else the first of equal elements. */
function largestOf(bag: readonly Member[], rows: readonly (readonly number[])[], column: number) {
  let best: (Member & { column: number }) | undefined;
  for (const member of bag) {
    const [value, there] = [rows[member.row][column], best ? rows[best.row][column] : 0];
    if (!best || value > there || (Number.isNaN(value) && !Number.isNaN(there))) best = { ...member, column };
  }
  return best;
}

export const bagGradientReference: Implementation<BagAttributes, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [output], attributes }) {
    const [, , , gradients, counts, best] = inputs as [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor?];
    const width = gradients.shape[1];
    const incoming = rowsOf(gradients);
    const numbers = best && toIntegers(best).map(Number);
    const shares = attributes.mode === "mean" ? toNumbers(counts).map((count) => 1 / count) : undefined;
    const sums = new Float64Array(output.size);
    for (const [bag, members] of bagsOf(inputs, attributes).entries())
      for (const { row, number, factor } of members)
        for (let column = 0; column < width; column++) {
          if (numbers && numbers[bag * width + column] !== number) continue;
          sums[row * width + column] += incoming[bag][column] * factor * (shares?.[bag] ?? 1);
        }
    store(output, sums);
  },
};

export const bagFactorsReference: Implementation<BagAttributes, [Tensor, Tensor, Tensor, Tensor], [Tensor]> = {
  run({ inputs: [indices, offsets, table, gradients], outputs: [output], attributes }) {
    const [rows, incoming] = [rowsOf(table), rowsOf(gradients)];
    const products = new Float64Array(output.size);
    for (const [bag, members] of bagsOf([indices, offsets], { ...attributes, hasFactors: false }).entries())
      for (const { row, number } of members)
        products[number] = rows[row].reduce((sum, value, column) => sum + value * incoming[bag][column], 0);
    store(output, products);
  },
};

/** @throws {ShapeError} for the first invalid offset. */
function checkOffsets(offsets: Tensor, total: number): void {
  const values = toIntegers(offsets);
  const position = values.findIndex(
    (value, at) => value < (values[at - 1] ?? 0n) || value > total || (at === 0 && value !== 0n),
  );
  if (position >= 0) throw offsetsError(position, values[position], total);
}
