/** The calls that test attention: options alone, in pairs and triples, and sizes around those of tiles. */
import { isExhaustive, repeats, usually } from "../../support/repeats.ts";
import { type Layout, layouts, Random } from "../samples.ts";

/** The shapes and options of a call. */
export interface AttentionCase extends Options {
  readonly name: string;
  readonly batch: number;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  readonly valueDim: number;
  /** Whether only results are compared, because another case has the same gradients' kernels. Default false. */
  readonly isForward?: boolean;
  /** The layouts of q, k, v and the gradient of the output. */
  readonly layouts: readonly [Layout, Layout, Layout, Layout];
}

export interface Options {
  /** Default 2. */
  readonly heads?: number;
  /** Default: as many as heads. */
  readonly kvHeads?: number;
  /** [batch, rows, dim] instead of [batch, 1, rows, dim]. */
  readonly withoutHeads?: boolean;
  readonly causal?: "bottom-right" | "top-left";
  readonly window?: { readonly left?: number; readonly right?: number };
  readonly scale?: number;
  readonly softcap?: number;
  readonly dropout?: number;
  /**
   * The operand's axes among batch, heads, queries and keys. Other axes have size 1, or are omitted if they are leading
   * ones.
   */
  readonly mask?: string;
  readonly bias?: string;
  readonly sinks?: boolean;
  readonly slopes?: "heads" | "sequences";
  readonly packed?: boolean;
  /** Whether the call also uses the log-sum-exp, which then has a gradient. */
  readonly logSumExp?: boolean;
}

/** Every option, some in several forms. */
export const options = {
  causal: { causal: "bottom-right" },
  causalTopLeft: { causal: "top-left" },
  windowLeft: { window: { left: 3 } },
  windowBoth: { window: { left: 5, right: 2 } },
  scale: { scale: 0.37 },
  softcap: { softcap: 1.5 },
  dropout: { dropout: 0.3 },
  mask: { mask: "bhij" },
  maskOfKeys: { mask: "bj" },
  bias: { bias: "bhij" },
  biasOfHeads: { bias: "hij" },
  biasOfKeys: { bias: "j" },
  sinks: { sinks: true },
  slopes: { slopes: "heads" },
  slopesOfSequences: { slopes: "sequences" },
  packed: { packed: true },
  logSumExp: { logSumExp: true },
  grouped: { heads: 4, kvHeads: 2 },
  multiQuery: { heads: 3, kvHeads: 1 },
  withoutHeads: { heads: 1, withoutHeads: true },
} as const satisfies Readonly<Record<string, Options>>;

export type OptionName = keyof typeof options;
export const optionNames = Object.keys(options) as OptionName[];

/** Sizes at, below and above those of SIMD-groups and tiles. */
export const rows = [1, 2, 7, 8, 16, 31, 33, 63, 64, 65, 80, 96, 127, 128, 129, 200, 256, 257, 511] as const;
/** The largest size of a head with a fused kernel. */
export const dims = rows.filter((size) => size <= 256);

/** [batch, queries, keys, dim, valueDim] */
type Sizes = readonly [number, number, number, number, number];

const fewSizes: readonly Sizes[] = [
  [2, 5, 7, 8, 8],
  [1, 33, 65, 64, 64],
  [2, 70, 40, 16, 33],
  [2, 1, 129, 31, 16],
];

/** Sizes for pairs and triples of options, with one tile and with several. Large ones run only in complete runs. */
const smallSizes: readonly Sizes[] = [
  ...usually(fewSizes, ([, queries, keys]) => queries * keys < 1000),
  ...([
    [2, 9, 9, 1, 2],
    [1, 40, 17, 20, 9],
    [repeats({ usual: 1, all: 2 }), 16, 48, 33, 32],
  ] as const),
];

/** Whether options are compatible: no two set the same property. */
export function goTogether(names: readonly OptionName[]): boolean {
  const keys = names.flatMap((name) => Object.keys(options[name]));
  return new Set(keys).size === keys.length;
}

export function caseOf(names: readonly OptionName[], [batch, queries, keys, dim, valueDim]: Sizes, seed: number) {
  const random = new Random(seed);
  const merged: Options = Object.assign({}, ...names.map((name) => options[name]));
  const layout = () => layouts[random.integer(0, layouts.length - 1)];
  const sizes = { batch: merged.packed ? 1 : batch, queries, keys, dim, valueDim };
  const drawn: AttentionCase = { name: "", ...merged, ...sizes, layouts: [layout(), layout(), layout(), layout()] };
  return {
    ...drawn,
    name: `${names.join("+") || "plain"} ${Object.values(sizes).join("·")} ${drawn.layouts.join("/")}`,
  };
}

/** Each option alone, and none, in a few sizes; usually each in one of the sizes, in rotation. */
export const alone: readonly AttentionCase[] = [[], ...optionNames.map((name) => [name])].flatMap((names, at) =>
  usually(fewSizes, (_, index) => index === at % fewSizes.length).map((sizes, index) =>
    caseOf(names, sizes, 31 * at + index),
  ),
);

/** Each pair of compatible options. */
export const pairs: readonly (readonly [OptionName, OptionName])[] = optionNames.flatMap((first, at) =>
  optionNames
    .slice(at + 1)
    .map((second) => [first, second] as const)
    .filter(goTogether),
);

/** One case for each pair of options whose first one is `name`. */
export const pairsWith = (name: OptionName): AttentionCase[] =>
  pairs
    .filter(([first]) => first === name)
    .map((names, at) => caseOf(names, smallSizes[(at + name.length) % smallSizes.length], 977 * at + name.length));

const pairKey = (names: readonly OptionName[]): string => names.toSorted().join("+");

/** The keys of the pairs in a triple. */
export const pairsIn = ([a, b, c]: readonly [OptionName, OptionName, OptionName]): string[] =>
  [[a, b] as const, [a, c] as const, [b, c] as const].map(pairKey);

/**
 * Triples of options, drawn until every pair is in one of them: the third option is the one that adds most new pairs.
 */
export function drawTriples(seed: number): (readonly [OptionName, OptionName, OptionName])[] {
  const random = new Random(seed);
  const missing = new Set(pairs.map(pairKey));
  const found: (readonly [OptionName, OptionName, OptionName])[] = [];
  for (const pair of pairs) {
    if (!missing.has(pairKey(pair))) continue;
    const thirds = optionNames.filter((third) => !pair.includes(third) && goTogether([...pair, third]));
    const ranked = thirds.map((third) => {
      const triple = [...pair, third] as const;
      return { triple, rank: pairsIn(triple).filter((key) => missing.has(key)).length + random.next() / 2 };
    });
    const best = ranked.reduce((most, each) => (each.rank > most.rank ? each : most));
    found.push(best.triple);
    for (const key of pairsIn(best.triple)) missing.delete(key);
  }
  return found;
}

/**
 * Every shape of a bias that broadcasts, with a mask that has the remaining axes (all axes, if the bias has all of
 * them).
 */
export const broadcasts: readonly AttentionCase[] = Array.from({ length: 15 }, (_, at) => {
  const axes = (bits: number) => [..."bhij"].filter((_, axis) => bits & (1 << axis)).join("");
  const [bias, mask] = [axes(at + 1), axes(14 - at) || "bhij"];
  const { name, ...rest } = caseOf([], [2, 9, 37, 8, 8], at);
  return { ...rest, bias, mask, name: `bias ${bias} mask ${mask} ${name}` };
});

/** Each triple in one size. */
export function triples(seed: number): AttentionCase[] {
  const random = new Random(seed);
  return drawTriples(seed).map((names, at) => caseOf(names, smallSizes[random.integer(0, smallSizes.length - 1)], at));
}

/**
 * Draws cases with one option or none, in which each size occurs at least once as each dimension. A usual run prefers
 * small products, and skips a draw whose size an earlier case had as the same dimension.
 */
export function sampledSizes(seed: number): AttentionCase[] {
  const random = new Random(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[random.integer(0, items.length - 1)]!;
  const found: AttentionCase[] = [];
  const had = new Set<string>();
  const most = repeats({ usual: 50_000, all: 1_500_000 });
  const draws = rows.flatMap((size) => [0, 1, 2, 3].map((role) => ({ size, role })));
  for (const { size, role } of draws.filter(({ size, role }) => role < 2 || size <= 256)) {
    if (!isExhaustive && had.has(`${size} ${role}`)) continue;
    for (;;) {
      const drawn = [1, pick(rows), pick(rows), pick(dims), pick(dims)].with(role + 1, size) as unknown as Sizes;
      if (drawn[1] * drawn[2] * (drawn[3] + drawn[4]) > most) continue;
      for (const [at, drawnSize] of drawn.slice(1).entries()) had.add(`${drawnSize} ${at}`);
      found.push(caseOf(random.next() < 0.5 ? [] : [pick(optionNames)], drawn, found.length));
      break;
    }
  }
  return found;
}

/** Head sizes without a fused kernel: of q and k, of v, and of both. */
export const wide: readonly AttentionCase[] = rows
  .filter((size) => size > 256)
  .flatMap((size, at) => [
    caseOf(["causal"], [1, 9, 12, size, 8], 3 * at),
    caseOf(["bias"], [1, 7, 16, 16, size], 3 * at + 1),
    caseOf(["grouped"], [1, 2, 31, size, size], 3 * at + 2),
  ]);
