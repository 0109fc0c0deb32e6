/** A module for openWorkerDataset: squares, with the options of the data set. */
interface Options {
  readonly length: number;
  readonly isBroken?: boolean;
}

export default async ({ length, isBroken }: Options) => {
  if (isBroken) return { length };
  await Bun.sleep(0);
  return {
    length,
    async get(index: number, context?: { readonly epoch: number; readonly seed: bigint }) {
      if (index === 13) throw new Error("13 is not there");
      await Bun.sleep((7 * index) % 3);
      return { square: index ** 2, values: Float32Array.of(index, 1), seed: `${context?.seed}` };
    },
  };
};
