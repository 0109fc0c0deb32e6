/** All families of operations, and the case that a seed and a number select. */
import { baseShape, type Case, sizeOf } from "./case.ts";
import { Draw, MOST_ELEMENTS } from "./draw.ts";
import { elementwise } from "./families/elementwise.ts";
import { indexing } from "./families/indexing.ts";
import { layers, optimizers, training } from "./families/layers.ts";
import { modules } from "./families/modules.ts";
import { pictures } from "./families/pictures.ts";
import { linalg, products } from "./families/products.ts";
import { reductions } from "./families/reductions.ts";
import { rows } from "./families/rows.ts";
import { shaping } from "./families/shaping.ts";
import { spectra } from "./families/spectra.ts";
import { caseOf, type Family } from "./family.ts";

/**
 * The families, each with its fraction of the cases. Fractions are proportional to the time that programs spend in a
 * family, not to the number of its operations.
 */
export const families = {
  elementwise: [elementwise, 0.15],
  reductions: [reductions, 0.13],
  products: [products, 0.16],
  linalg: [linalg, 0.05],
  spectra: [spectra, 0.03],
  rows: [rows, 0.12],
  indexing: [indexing, 0.09],
  shaping: [shaping, 0.07],
  pictures: [pictures, 0.09],
  modules: [modules, 0.04],
  layers: [layers, 0.04],
  optimizers: [optimizers, 0.01],
  training: [training, 0.02],
} as const satisfies Readonly<Record<string, readonly [Family, number]>>;
export type FamilyName = keyof typeof families;

const shares = Object.fromEntries(Object.entries(families).map(([name, [, share]]) => [name, share]));

export interface DrawOptions {
  /** If given, only operations or families whose names contain one of them are drawn. */
  readonly words?: readonly string[];
  /** Whether operands have only a few elements. */
  readonly small?: boolean;
}

export function drawCase(seed: number, number: number, { words = [], small }: DrawOptions = {}): Case {
  const draw = new Draw(seed, number, small);
  const chosen = Object.entries(families).flatMap(([family, [members]]) => {
    const names = Object.keys(members).filter((name) => words.length === 0 || matches(family, name, words));
    return names.length === 0 ? [] : [[family, names] as const];
  });
  if (chosen.length === 0) throw new Error(`no operation's or family's name contains ${words.join(" or ")}`);
  const family = draw.share(Object.fromEntries(chosen.map(([name]) => [name, shares[name]])));
  const name = draw.pick(new Map(chosen).get(family)!);
  const members: Family = families[family as FamilyName][0];
  for (;;) {
    const each = caseOf(family, name, members[name](draw));
    if (each.operands.every((operand) => sizeOf(baseShape(operand)) <= 2 * MOST_ELEMENTS)) return each;
  }
}

const matches = (family: string, name: string, words: readonly string[]): boolean =>
  words.some((word) => family === word || name.toLowerCase().includes(word.toLowerCase()));

/** Returns the elements of the largest operand: the horizontal axis of the pictures. */
export const largestOf = ({ operands }: Case): number => Math.max(1, ...operands.map(({ shape }) => sizeOf(shape)));
