/** Discrete Fourier transforms, with PyTorch's names. Exported as `fft`. */
export {
  type FrequencyOptions,
  fftfreq,
  fftshift,
  ifftshift,
  rfftfreq,
  type ShiftOptions,
} from "./frequencies.ts";
export type { FftManyOptions, FftNorm, FftOptions } from "./lines.ts";
export {
  type FftManyArguments,
  fft2,
  fftn,
  hfft2,
  hfftn,
  ifft2,
  ifftn,
  ihfft2,
  ihfftn,
  irfft2,
  irfftn,
  rfft2,
  rfftn,
} from "./many.ts";
export { type FftArguments, fft, hfft, ifft, ihfft, irfft, type RealFrom, rfft } from "./one.ts";

import "../ops/methods.ts";
