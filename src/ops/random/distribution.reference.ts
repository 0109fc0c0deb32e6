import type { Implementation } from "../../backend/backend.ts";
import { encoderOf, store } from "../../backend/reference/elements.ts";
import { bitsOf, floatOf, fma } from "../../random/float32.ts";
import { normalPair, normalPair64, uniform64 } from "../../random/normal.ts";
import { blockCounter, type PhiloxCounter, philox } from "../../random/philox.ts";
import { bfloat16ToNumber } from "../../tensor/bfloat16.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Distribution, DistributionAttributes, RandomStart } from "./primitive.ts";

/** The four words of a block, and their lower words. */
type Words = readonly [number, number, number, number];
type Draw = (words: Words, low: Words) => readonly (number | bigint)[];

export const distributionReference: Implementation<DistributionAttributes, readonly Tensor[], [Tensor]> = {
  run({ outputs: [output], attributes }) {
    const draw = drawing(attributes.distribution, output.dtype);
    const values: (number | bigint)[] = [];
    for (let block = 0; values.length < output.size; block++)
      values.push(...draw(wordsOf(attributes, block), wordsOf(attributes, block, 1)));
    store(output, values.slice(0, output.size));
  },
};

/** Returns the words of a block of four elements, counted from the start of a call. */
export function wordsOf({ key, counter }: RandomStart, block: number, stream = 0): Words {
  const [low, high] = counter;
  const [b0, b1] = blockCounter(low + block);
  const at: PhiloxCounter = [b0, (high + b1) >>> 0, counter[2] + stream, counter[3]];
  return philox(at, key);
}

function drawing(distribution: Distribution, dtype: DType): Draw {
  switch (distribution.kind) {
    case "bits":
      return (words) => words;
    case "uniform":
      return dtype === "float64" ? uniformWide(distribution) : uniformNarrow(distribution, dtype);
    case "normal":
      return dtype === "float64" ? normalWide(distribution) : normalNarrow(distribution);
    case "integers":
      return integers(distribution);
  }
}

type Of<Kind extends Distribution["kind"]> = Extract<Distribution, { kind: Kind }>;

/** Masks for the bits of a float32 that the dtype can hold, so that rounding to it never gives 1. */
const kept: Readonly<Partial<Record<DType, number>>> = { float16: 0xffffe000, bfloat16: 0xffff0000 };

/** Converts a word to a uniform float32, truncated to the precision of the dtype. */
const uniform32 = (word: number, dtype: DType): number =>
  floatOf(bitsOf((word >>> 8) * 2 ** -24) & (kept[dtype] ?? 0xffffffff));

function uniformNarrow({ low, high }: Of<"uniform">, dtype: DType): Draw {
  const scale = Math.fround(high - low);
  const [least, most] = [Math.fround(low), Math.fround(high)];
  const round = rounderOf(dtype);
  const number = (word: number) => {
    const value = round(fma(uniform32(word, dtype), scale, least));
    return value < most ? value : round(least);
  };
  return (words) => words.map(number);
}

/** Returns a function that rounds a float32 to the dtype. */
function rounderOf(dtype: DType): (value: number) => number {
  if (dtype === "float16") return Math.f16round;
  if (dtype === "bfloat16") return (value) => bfloat16ToNumber(Number(encoderOf("bfloat16")(value)));
  return (value) => value;
}

function uniformWide({ low, high }: Of<"uniform">): Draw {
  return (words, lower) =>
    words.map((word, lane) => {
      const value = uniform64(word, lower[lane]) * (high - low) + low;
      return value < high ? value : low;
    });
}

function normalNarrow({ mean, deviation }: Of<"normal">): Draw {
  const [center, scale] = [Math.fround(mean), Math.fround(deviation)];
  return ([a, b, c, d]) => [...normalPair(a, b), ...normalPair(c, d)].map((z) => fma(z, scale, center));
}

function normalWide({ mean, deviation }: Of<"normal">): Draw {
  return ([a, b, c, d], [e, f, g, h]) =>
    [...normalPair64([a, e], [b, f]), ...normalPair64([c, g], [d, h])].map((z) => z * deviation + mean);
}

function integers({ least, choices }: Of<"integers">): Draw {
  return (words, lower) =>
    words.map((word, lane) => least + ((((BigInt(word) << 32n) | BigInt(lower[lane])) * choices) >> 64n));
}
