import { describe, expect, test } from "bun:test";
import { ArgumentError, DisposedError, DTypeError, type OrchardError, ShapeError } from "../../../src/core/errors.ts";
import { ones } from "../../../src/ops/creation/full.ts";
import { addmm } from "../../../src/ops/matmul/addmm.ts";
import { dot } from "../../../src/ops/matmul/dot.ts";
import { einsum } from "../../../src/ops/matmul/einsum.ts";
import { bmm, matmul, mm } from "../../../src/ops/matmul/matmul.ts";
import { outer } from "../../../src/ops/matmul/outer.ts";
import type { DType } from "../../../src/tensor/dtype.ts";

type Kind = new (...parameters: never[]) => OrchardError;
type Case = readonly [name: string, call: () => unknown, kind: Kind, ...said: string[]];

const of = (...shape: number[]) => ones(shape);
/** Makes an operand of another dtype, with a type that hides the dtype from the compiler. */
const as = (dtype: DType, ...shape: number[]) => ones(shape, { dtype: dtype as "float32" });

const products: readonly Case[] = [
  [
    "inner sizes",
    () => matmul(of(2, 3), of(2, 3)),
    ShapeError,
    "[matmul]",
    "float32[2, 3] times float32[2, 3]",
    "3 el",
  ],
  ["an inner size of 1", () => matmul(of(2, 3), of(1, 2)), ShapeError, "has 3 elements", "1; they must be equal"],
  ["vectors of other lengths", () => matmul(of(3), of(2)), ShapeError, "float32[3] times float32[2]"],
  ["a scalar", () => matmul(of(), of(2)), ShapeError, "at least one axis", "mul(a, b)"],
  ["batches", () => matmul(of(2, 2, 3), of(3, 3, 2)), ShapeError, "[matmul]", "[2]", "[3]"],
  ["other dtypes", () => matmul(of(2, 2), as("float16", 2, 2)), DTypeError, "float16[2, 2]", "toDType"],
  ["bool", () => matmul(as("bool", 2, 2), as("bool", 2, 2)), DTypeError, "bool has no product", "int32"],
  ["a vector for mm", () => mm(of(2, 3), of(3)), ShapeError, "[mm]", "expected matrices", "float32[3]"],
  ["inner sizes of mm", () => mm(of(2, 3), of(2, 3)), ShapeError, "[mm]", "must be equal"],
  ["matrices for bmm", () => bmm(of(2, 3), of(3, 2)), ShapeError, "[bmm]", "rank 3"],
  ["batches of bmm", () => bmm(of(1, 2, 3), of(2, 3, 2)), ShapeError, "1 and 2 matrices", "matmul broadcasts"],
  ["matrices for dot", () => dot(of(2, 2), of(2, 2)), ShapeError, "[dot]", "expected vectors"],
  ["lengths of dot", () => dot(of(2), of(3)), ShapeError, "[dot]", "float32[2] and float32[3]"],
  ["dtypes of dot", () => dot(of(2), as("int64", 2)), DTypeError, "[dot]", "int64[2]"],
  ["matrices for outer", () => outer(of(2, 2), of(2)), ShapeError, "[outer]", "float32[2, 2]"],
];

const sums: readonly Case[] = [
  ["a vector for addmm", () => addmm(of(2), of(2, 3), of(3)), ShapeError, "[addmm]", "matrices", "float32[3]"],
  ["inner sizes", () => addmm(of(2, 2), of(2, 3), of(2, 2)), ShapeError, "[addmm]", "must be equal"],
  ["an input that is too long", () => addmm(of(3), of(2, 3), of(3, 2)), ShapeError, "float32[3]", "shape [2, 2]"],
  [
    "an input of too many axes",
    () => addmm(of(1, 2, 2), of(2, 3), of(3, 2)),
    ShapeError,
    "expected an input that broadcasts",
  ],
  ["an input of another dtype", () => addmm(as("float16", 2), of(2, 3), of(3, 2)), DTypeError, "[addmm]", "float16[2]"],
  [
    "a fraction of integers",
    () => addmm(as("int32", 2), as("int32", 2, 3), as("int32", 3, 2), { alpha: 0.5 }),
    ArgumentError,
    "expected alpha to be a whole number",
    "got 0.5",
  ],
  [
    "a factor that is not a number",
    () => addmm(of(2), of(2, 3), of(3, 2), { beta: "2" as unknown as number }),
    ArgumentError,
    'expected beta to be a number, got "2"',
  ],
];

const equations: readonly Case[] = [
  ["no operand", () => einsum("ij->i"), ArgumentError, "missing argument operands"],
  ["too few operands", () => einsum("ij,jk->ik", of(2, 3)), ArgumentError, "names 2 operands, got 1"],
  ["two arrows", () => einsum("i->i->i", of(2)), ArgumentError, "more than one ->"],
  ["a digit", () => einsum("i1->i", of(2, 2)), ArgumentError, '"i1" has "1"'],
  ["two ellipses", () => einsum("...i...->i", of(2)), ArgumentError, "two ellipses"],
  ["an unknown letter", () => einsum("ij->ik", of(2, 3)), ArgumentError, 'has "k", which no operand has'],
  ["a letter twice", () => einsum("ij->ii", of(2, 3)), ArgumentError, '"i" twice'],
  ["a rank", () => einsum("ijk->i", of(2, 3)), ShapeError, "operand 0 3 letters", "2 axes", "..."],
  ["too few axes for an ellipsis", () => einsum("ij...->i", of(2)), ShapeError, "1 axes"],
  ["sizes of one letter", () => einsum("ij,jk->ik", of(2, 3), of(2, 3)), ShapeError, '"j" have 3 and 2'],
  ["sizes of a diagonal", () => einsum("ii->i", of(2, 3)), ShapeError, "diagonal", "2 and 3"],
  ["other dtypes", () => einsum("i,i->", of(2), as("float64", 2)), DTypeError, "[einsum]", "float64[2]"],
  ["bool", () => einsum("i,i->", as("bool", 2), as("bool", 2)), DTypeError, "bool has no product"],
];

for (const [family, cases] of Object.entries({ products, addmm: sums, einsum: equations }))
  describe(`${family} reject invalid operands`, () => {
    test.each(cases)("%s is rejected", (_, call, kind, ...said) => {
      let error: unknown;
      try {
        call();
      } catch (caught) {
        error = caught;
      }
      expect(error).toBeInstanceOf(kind);
      for (const part of said) expect((error as OrchardError).message).toContain(part);
    });
  });

test("operands that were disposed of are rejected", () => {
  const [alive, gone, vector] = [of(2, 2), of(2, 2), of(2)];
  gone.dispose();
  vector.dispose();
  expect(() => matmul(alive, gone)).toThrow(DisposedError);
  expect(() => addmm(gone, alive, alive)).toThrow(DisposedError);
  expect(() => einsum("ij,jk", gone, alive)).toThrow(DisposedError);
  expect(() => outer(of(2), vector)).toThrow(DisposedError);
});

test("the error for einsum of many operands with more than 8 axes in common says so", () => {
  const operands = Array.from({ length: 3 }, () => ones([1, 1, 1]));
  expect(() => einsum("abc,def,ghi->abcdefghi", ...operands)).toThrow(ShapeError);
});
