/** Processing of sampled signals. Exported as `signal`. */
export { type ConvolveMode, type ConvolveOptions, convolve, correlate } from "./convolve.ts";
export { type MelOptions, melFilterbank, type SpectrogramOptions, spectrogram } from "./mel.ts";
export { resample } from "./resample.ts";
export { type IstftOptions, istft, type ShortTimeOptions, type StftOptions, stft } from "./stft.ts";
export {
  bartlettWindow,
  blackmanWindow,
  type HammingOptions,
  hammingWindow,
  hannWindow,
  type KaiserOptions,
  kaiserWindow,
  type WindowOptions,
} from "./windows.ts";

import "../ops/methods.ts";
