/** Fourier transforms and signals: each function with valid arguments, in alphabetical order. */
import { fft, ones, signal } from "../../src/index.ts";
import type { Call, Calls } from "./upper.ts";

const line = { n: 3, dim: 0, norm: "ortho" };
const many = { s: [2, 3], dim: [0, 1], norm: "ortho" };
const square = () => ones([2, 2]);

const frames = () => ({
  hopLength: 1,
  winLength: 3,
  window: ones([3]),
  center: true,
  normalized: true,
  onesided: true,
});

export const spectralCalls: Calls = {
  bartlettWindow: [signal.bartlettWindow as Call, () => [4, { periodic: true, dtype: "float64" }]],
  blackmanWindow: [signal.blackmanWindow as Call, () => [4, { periodic: true, dtype: "float64" }]],
  convolve: [signal.convolve as Call, () => [ones([3]), ones([2]), { mode: "same", method: "fft" }]],
  correlate: [signal.correlate as Call, () => [ones([3]), ones([2]), { mode: "same", method: "fft" }]],
  fft: [fft.fft as Call, () => [square(), line]],
  fft2: [fft.fft2 as Call, () => [square(), many]],
  fftfreq: [fft.fftfreq as Call, () => [4, { d: 0.5, dtype: "float64" }]],
  fftn: [fft.fftn as Call, () => [square(), many]],
  fftshift: [fft.fftshift as Call, () => [square(), { dim: 0 }]],
  hammingWindow: [signal.hammingWindow as Call, () => [4, { periodic: true, alpha: 0.5, beta: 0.5, dtype: "float64" }]],
  hannWindow: [signal.hannWindow as Call, () => [4, { periodic: true, dtype: "float64" }]],
  hfft: [fft.hfft as Call, () => [square(), line]],
  hfft2: [fft.hfft2 as Call, () => [square(), many]],
  hfftn: [fft.hfftn as Call, () => [square(), many]],
  ifft: [fft.ifft as Call, () => [square(), line]],
  ifft2: [fft.ifft2 as Call, () => [square(), many]],
  ifftn: [fft.ifftn as Call, () => [square(), many]],
  ifftshift: [fft.ifftshift as Call, () => [square(), { dim: 0 }]],
  ihfft: [fft.ihfft as Call, () => [square(), line]],
  ihfft2: [fft.ihfft2 as Call, () => [square(), many]],
  ihfftn: [fft.ihfftn as Call, () => [square(), many]],
  irfft: [fft.irfft as Call, () => [square(), line]],
  irfft2: [fft.irfft2 as Call, () => [square(), many]],
  irfftn: [fft.irfftn as Call, () => [square(), many]],
  istft: [signal.istft as Call, () => [signal.stft(ones([8]), 4, { hopLength: 1 }), 4, { ...frames(), length: 6 }]],
  kaiserWindow: [signal.kaiserWindow as Call, () => [4, { periodic: true, beta: 3, dtype: "float64" }]],
  melFilterbank: [
    signal.melFilterbank as Call,
    () => [8000, 64, { nMels: 4, fMin: 100, fMax: 3000, scale: "htk", normalized: false, dtype: "float64" }],
  ],
  resample: [signal.resample as Call, () => [ones([8]), 3, 2]],
  rfft: [fft.rfft as Call, () => [square(), line]],
  rfft2: [fft.rfft2 as Call, () => [square(), many]],
  rfftfreq: [fft.rfftfreq as Call, () => [4, { d: 0.5, dtype: "float64" }]],
  rfftn: [fft.rfftn as Call, () => [square(), many]],
  spectrogram: [signal.spectrogram as Call, () => [ones([8]), { nFft: 4, ...frames(), padMode: "constant", power: 1 }]],
  stft: [signal.stft as Call, () => [ones([8]), 4, { ...frames(), padMode: "constant" }]],
};
