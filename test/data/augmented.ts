/** A module for openWorkerDataset: images with random changes. */
import { arange, data, type Tensor } from "../../src/index.ts";

const { colorJitter, compose, randomCrop, randomHorizontalFlip, randomRotation, toFloat } = data.transforms;

export default ({ length }: { readonly length: number }): data.Dataset<Tensor> => {
  const images = {
    length,
    get: (index: number) =>
      arange(3 * 64)
        .add(index)
        .to("uint8")
        .reshape([3, 8, 8]),
  };
  const change = compose([
    randomCrop(7, { padding: 1 }),
    randomHorizontalFlip(),
    randomRotation(20, { mode: "bilinear" }),
    colorJitter({ brightness: 0.5, saturation: 0.5 }),
    toFloat(),
  ]);
  return new data.MappedDataset(images, change);
};
