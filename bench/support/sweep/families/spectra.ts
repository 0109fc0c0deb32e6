/** Fourier transforms and short-time transforms of real tensors. Complex results are not compared. */
import { type Draw, operand } from "../draw.ts";
import { at, type Drawn, each, type Family } from "../family.ts";

/** One rounding error for each level of a transform; the largest transforms have 20 levels. */
const SLACK = 64;

const line = (draw: Draw) => {
  const n = draw.size(2, 2 ** 18);
  return operand(draw, draw.chance(0.4) ? [n] : [draw.size(1, Math.max(1, 2 ** 20 / n)), n]);
};

const image = (draw: Draw) =>
  operand(draw, [...(draw.chance(0.5) ? [] : [draw.size(1, 16)]), draw.size(2, 1024), draw.size(2, 1024)]);

const norm = (draw: Draw) => ({ norm: draw.pick(["backward", "ortho", "forward"]) });

const toComplex =
  (make: typeof line) =>
  (draw: Draw): Drawn => ({
    operands: [make(draw)],
    options: norm(draw),
    compared: null,
  });
const toReal =
  (make: typeof line) =>
  (draw: Draw): Drawn => ({
    operands: [make(draw)],
    options: norm(draw),
    gradients: draw.chance(0.2),
    slack: SLACK,
  });

const transforms: Family = {
  ...each("fft ifft rfft ihfft", toComplex(line)),
  ...each("irfft hfft", toReal(line)),
  ...each("fft2 fftn ifft2 ifftn rfft2 rfftn ihfft2 ihfftn", toComplex(image)),
  ...each("irfft2 irfftn hfft2 hfftn", toReal(image)),
  ...each("fftshift ifftshift", (draw) => ({ operands: [image(draw)] })),
};

const prefixed = (space: string, family: Family): Family =>
  Object.fromEntries(Object.entries(family).map(([name, drawing]) => [`${space}.${name}`, drawing]));

export const spectra: Family = {
  ...prefixed("fft", transforms),
  "signal.stft": (draw) => {
    const nFft = draw.pick([64, 100, 256, 400, 512, 1024]);
    const [batch, hop] = [draw.size(1, 16), Math.ceil(nFft / draw.pick([2, 4]))];
    return {
      operands: [operand(draw, [batch, draw.size(2 * nFft, 2 ** 17)])],
      args: [at(0), nFft],
      compared: null,
      ours: { options: { hopLength: hop } },
      theirs: { name: "stft", options: { hop_length: hop, return_complex: true } },
    };
  },
};
