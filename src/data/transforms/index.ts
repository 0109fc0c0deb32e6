/** Image transforms, some of them random. Exported as `data.transforms`. */
export {
  type AffineOptions,
  affine,
  type RandomAffineOptions,
  randomAffine,
  randomRotation,
  rotate,
  type SamplingOptions,
} from "./affine.ts";
export { compose, normalize, type ToFloatOptions, toFloat } from "./basic.ts";
export {
  adjustBrightness,
  adjustContrast,
  adjustHue,
  adjustSaturation,
  type ColorJitterOptions,
  colorJitter,
  type GrayscaleOptions,
  grayscale,
} from "./color.ts";
export {
  type Border,
  type BorderOptions,
  centerCrop,
  type FlipOptions,
  pad,
  type RandomCropOptions,
  type RandomResizedCropOptions,
  type ResizeMode,
  type ResizeOptions,
  randomCrop,
  randomHorizontalFlip,
  randomResizedCrop,
  randomVerticalFlip,
  resize,
} from "./sizes.ts";
export type { Transform } from "./transform.ts";
