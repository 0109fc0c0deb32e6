import { describe, expect, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { ones } from "../../../src/ops/creation/full.ts";
import { einsum } from "../../../src/ops/matmul/einsum.ts";
import { isInteger } from "../../../src/tensor/dtype.ts";
import { tested, testTable } from "../run.ts";
import type { Block, Layout } from "../samples.ts";
import type { Expected, OperationRow, Round, Sample } from "../table.ts";
import { productDTypes, wrapped } from "./products.ts";

/** An equation with its ellipses and its arrow expanded, for the oracle. */
interface Equation {
  readonly equation: string;
  /** Default: the equation itself. */
  readonly meaning?: string;
}

/** The definition: every combination of every letter's values, product by product, summed in that order. */
function oracle(inputs: readonly Block[], { equation, meaning = equation }: Equation, round: Round): Expected {
  const [left, right] = meaning.replaceAll(" ", "").split("->");
  const terms = left.split(",");
  const sizes = new Map<string, number>();
  for (const [index, term] of terms.entries())
    for (const [axis, letter] of [...term].entries())
      sizes.set(letter, Math.max(sizes.get(letter) ?? 0, inputs[index].shape[axis]));
  for (const [index, term] of terms.entries())
    for (const [axis, letter] of [...term].entries()) if (inputs[index].shape[axis] === 0) sizes.set(letter, 0);
  const output = [...right];
  const summed = [...sizes.keys()].filter((letter) => !output.includes(letter));
  const { dtype } = inputs[0];
  const isAlone = (letter: string) =>
    [...terms.entries()].filter(([index, term]) => inputs[index].shape[term.indexOf(letter)] === sizes.get(letter))
      .length === 1;
  // As in PyTorch, integers that are summed over in one operand alone become int64.
  const isWide = isInteger(dtype) && summed.some(isAlone);
  const at = new Map<string, number>();
  const valueAt = (index: number): number => {
    const { shape, values } = inputs[index];
    const letters = [...terms[index]];
    return values[
      letters.reduce((place, letter, axis) => place * shape[axis] + (shape[axis] === 1 ? 0 : at.get(letter)!), 0)
    ];
  };
  const over = (letters: readonly string[], body: () => void): void => {
    const [first, ...rest] = letters;
    if (first === undefined) {
      body();
      return;
    }
    for (let value = 0; value < sizes.get(first)!; value++) {
      at.set(first, value);
      over(rest, body);
    }
  };
  const results: number[] = [];
  over(output, () => {
    let sum = 0;
    over(summed, () => {
      let product = 1;
      for (const index of inputs.keys()) product = round(product * valueAt(index));
      sum = round(sum + product);
    });
    results.push(wrapped(isWide ? "int64" : dtype, sum));
  });
  const shape = output.map((letter) => sizes.get(letter)!);
  return { shape, values: results, ...(isWide && { dtype: "int64" }) };
}

const sample = (
  equation: string,
  shapes: readonly (readonly number[])[],
  { meaning, layouts = [] }: { meaning?: string; layouts?: readonly Layout[] } = {},
): Sample<Equation> => ({
  name: `${equation} ${shapes.map((shape) => `[${shape}]`).join(" ")}`,
  inputs: shapes.map((shape, index) => ({ shape, layout: layouts[index] ?? "contiguous" })),
  options: meaning === undefined ? { equation } : { equation, meaning },
});

const samples: Sample<Equation>[] = [
  sample(
    "ij,jk->ik",
    [
      [5, 7],
      [7, 3],
    ],
    { layouts: ["transposed", "strided"] },
  ),
  sample("ij,jk->ki", [
    [5, 7],
    [7, 3],
  ]),
  sample(
    "ij,jk",
    [
      [5, 7],
      [7, 3],
    ],
    { meaning: "ij,jk->ik" },
  ),
  sample(
    "ba,cb",
    [
      [2, 3],
      [4, 2],
    ],
    { meaning: "ba,cb->ac" },
  ),
  sample(
    "bA,Bb",
    [
      [2, 3],
      [4, 2],
    ],
    { meaning: "bA,Bb->AB" },
  ),
  sample(" i j , j k -> i k ", [
    [2, 3],
    [3, 2],
  ]),
  sample("i,i->", [[9], [9]]),
  sample("i,j->ij", [[4], [5]], { layouts: ["reversed", "offset"] }),
  sample("ii->i", [[4, 4]], { layouts: ["strided"] }),
  sample("ii", [[4, 4]], { meaning: "ii->" }),
  sample("iij->ji", [[3, 3, 4]]),
  sample("iji,j->i", [[3, 4, 3], [4]]),
  sample("iii->i", [[3, 3, 3]]),
  sample("ij->ji", [[2, 5]]),
  sample("ij->", [[3, 5]], { layouts: ["transposed"] }),
  sample("ij->j", [[3, 5]]),
  sample("->", [[]]),
  sample(",ij->ji", [[], [2, 3]]),
  sample(
    "ij,ij->ij",
    [
      [3, 5],
      [3, 5],
    ],
    { layouts: ["expanded", "reversed"] },
  ),
  sample("ij,kl->", [
    [2, 3],
    [4, 2],
  ]),
  sample("ijk,ilk,i->jl", [[2, 3, 4], [2, 5, 4], [2]]),
  sample("bqhd,bkhd->bhqk", [
    [2, 3, 2, 5],
    [2, 4, 2, 5],
  ]),
  sample("bhqk,bkhd->bqhd", [
    [2, 2, 3, 4],
    [2, 4, 2, 5],
  ]),
  sample(
    "ijkl,klmn->ijmn",
    [
      [2, 3, 2, 2],
      [2, 2, 3, 2],
    ],
    { layouts: ["transposed", "reversed"] },
  ),
  sample("abcdefgx,abcdefgy->abcdefgxy".replaceAll("g", ""), [
    [1, 2, 1, 2, 1, 2, 3],
    [1, 2, 1, 2, 1, 2, 2],
  ]),
  sample("abcdefgk,abcdefgk->abcdefg", [
    [1, 2, 1, 2, 1, 2, 1, 3],
    [1, 2, 1, 2, 1, 2, 1, 3],
  ]),
  sample("ij,jk,kl->il", [
    [2, 3],
    [3, 4],
    [4, 2],
  ]),
  sample("i,ij,j->", [[3], [3, 4], [4]]),
  sample("ab,bc,cd,de,ea->", [
    [2, 3],
    [3, 2],
    [2, 4],
    [4, 2],
    [2, 2],
  ]),
  sample(
    "...ij,...jk->...ik",
    [
      [2, 1, 2, 3],
      [3, 3, 2],
    ],
    { meaning: "xyij,yjk->xyik" },
  ),
  sample("...i->...", [[2, 3, 4]], { meaning: "xyi->xy" }),
  sample(
    "i...,i...",
    [
      [3, 2],
      [3, 2],
    ],
    { meaning: "ix,ix->x" },
  ),
  sample(
    "...a,a...",
    [
      [2, 3],
      [3, 2],
    ],
    { meaning: "xa,ax->x" },
  ),
  sample("...i->i", [[2, 3, 4]], { meaning: "xyi->i" }),
  sample("i...j->j...i", [[2, 3, 4, 5]], { meaning: "ixyj->jxyi" }),
  sample("ij,jk->ik", [
    [2, 1],
    [3, 2],
  ]),
  sample("bi,bi->b", [
    [1, 4],
    [3, 4],
  ]),
  sample("ij,jk->ik", [
    [2, 0],
    [0, 3],
  ]),
  sample("ij,j->i", [[0, 3], [3]]),
  sample("ij,j->i", [[20, 70], [70]], { layouts: ["transposed", "strided"] }),
];

/** A bound on the number of terms of one sum: the product of all sizes. */
const terms = (inputs: readonly Block[]): number =>
  inputs.reduce((product, { shape }) => product * Math.max(1, ...shape), 1);

const row: OperationRow<Equation> = {
  name: "einsum",
  compute: (operands, { equation }) => einsum(equation, ...operands),
  dtypes: productDTypes,
  samples,
  oracle,
  accuracy: { flash: true },
  sumLength: terms,
  gradient: true,
};

testTable("einsum", [row]);

describe("einsum contracts pairs in a good order", () => {
  test("einsum contracts the cheapest pair first, so that a chain of many letters stays within 8 axes", () => {
    const operands = [..."abcdefghijkl"].map(() => ones([2, 2]));
    const equation = `${[..."abcdefghijkl"].map((letter, at) => letter + "bcdefghijklm"[at]).join(",")}->am`;
    expect(einsum(equation, ...operands).toArray()).toEqual([
      [2 ** 11, 2 ** 11],
      [2 ** 11, 2 ** 11],
    ]);
  });

  test.each(tested)(
    "einsum computes the equations of attention by one product each on %s, without a copy",
    (backend) => {
      withBackend(backend, () => {
        const [q, k, v] = [ones([2, 3, 4, 5]), ones([2, 6, 4, 5]), ones([2, 6, 4, 5])];
        resetCodepaths();
        const scores = einsum("bqhd,bkhd->bhqk", q, k);
        expect(einsum("bhqk,bkhd->bqhd", scores, v).shape).toEqual([2, 3, 4, 5]);
        expect(codepaths().map(({ operation, calls }) => [operation, calls])).toEqual([["matmul", 2]]);
      });
    },
  );

  test("einsum of a permutation is a view", () => {
    const x = ones([2, 3]);
    expect(einsum("ij->ji", x).storage).toBe(x.storage);
    expect(einsum("...ij->...ji", x).shape).toEqual([3, 2]);
  });
});
