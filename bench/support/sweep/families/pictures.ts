/** Convolutions, pooling, and operations that resize or rearrange images. */
import type { DType } from "../../../../src/tensor/dtype.ts";
import { sizeOf } from "../case.ts";
import { type Draw, indices, operand } from "../draw.ts";
import { at, type Drawn, each, type Family } from "../family.ts";

/** Maximum multiplications of a convolution. */
const MOST_WORK = 2 ** 32;
const mostSide: Readonly<Record<number, number>> = { 1: 4096, 2: 160, 3: 32 };

const rankOf = (name: string): number => Number(/(\d)d/.exec(name)![1]);

/** A batch of channels over a signal, a picture or a volume. */
function picture(draw: Draw, rank: number, least = 4): number[] {
  const side = draw.size(least, mostSide[rank]);
  const sides = Array.from({ length: rank }, () => Math.max(least, Math.round(side * (0.7 + 0.6 * draw.uniform()))));
  const shape = [draw.size(1, 64), draw.size(1, 256), ...sides];
  return sizeOf(shape) > 2 ** 22 ? picture(draw, rank, least) : shape;
}

const drawnDType = (draw: Draw): DType => draw.share({ float32: 0.85, bfloat16: 0.1, float64: 0.05 });

function convolution(draw: Draw, name: string): Drawn {
  const rank = rankOf(name);
  const [batch, channels, ...sides] = picture(draw, rank, 8) as [number, number, ...number[]];
  const kernel = draw.pick([1, 3, 3, 3, 5, 7]);
  const isDepthwise = name.startsWith("conv") && !name.includes("T") && draw.chance(0.12);
  const [out, groups] = isDepthwise ? [channels, channels] : [draw.size(1, 256), 1];
  const stride = draw.pick([1, 1, 1, 2]);
  const isTransposed = name.includes("Transpose");
  const weight = isTransposed ? [channels, out] : [out, channels / groups];
  const shape = [...weight, ...Array(rank).fill(kernel)] as number[];
  if ((batch * sizeOf(sides) * sizeOf(shape)) / stride ** rank > MOST_WORK) return convolution(draw, name);
  const dtype = drawnDType(draw);
  const operands = [[batch, channels, ...sides], shape, [out]].map((each) => operand(draw, each, { dtype }));
  const options = { stride, padding: kernel >> 1, ...(groups > 1 ? { groups } : {}) };
  return { operands, options, gradients: draw.chance(0.25), slack: 16 };
}

function pooling(draw: Draw, name: string): Drawn {
  const kernel = draw.pick([2, 2, 3]);
  const x = operand(draw, picture(draw, rankOf(name)), { dtype: draw.chance(0.85) ? "float32" : "bfloat16" });
  const args = name.startsWith("lp") ? [at(0), 2, kernel] : [at(0), kernel];
  const hasStride = draw.chance(0.3);
  return {
    operands: [x],
    args,
    options: hasStride ? { stride: draw.integer(1, 2) } : {},
    gradients: name.startsWith("lp") ? false : draw.chance(0.25),
    slack: 16,
    theirs: { name: `nn.functional.${snake(name)}` },
  };
}

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export const pictures: Family = {
  ...each("conv1d conv2d conv2d conv3d convTranspose1d convTranspose2d convTranspose3d", convolution),
  ...each("maxPool1d maxPool2d maxPool3d avgPool1d avgPool2d avgPool3d lpPool1d lpPool2d lpPool3d", pooling),
  ...each(
    "adaptiveAvgPool1d adaptiveAvgPool2d adaptiveAvgPool3d adaptiveMaxPool1d adaptiveMaxPool2d adaptiveMaxPool3d",
    (draw, name) => {
      const x = operand(draw, picture(draw, rankOf(name), 8));
      const size = draw.pick([1, 1, 2, 3, 7]);
      return {
        operands: [x],
        args: [at(0), Array(rankOf(name)).fill(size)],
        gradients: draw.chance(0.2),
        slack: 32,
        theirs: { name: `nn.functional.${snake(name)}` },
      };
    },
  ),
  ...each("maxUnpool1d maxUnpool2d maxUnpool3d", (draw, name) => {
    const rank = rankOf(name);
    const shape = picture(draw, rank).map((size, axis) => (axis < 2 ? size : Math.max(1, size >> 1)));
    const places = 2 ** rank * sizeOf(shape.slice(2));
    const index = { ...indices(draw, shape, places), values: { distinct: places } };
    return {
      operands: [operand(draw, shape), index],
      args: [at(0), at(1), 2],
      compared: null,
      theirs: { name: `nn.functional.${snake(name)}` },
    };
  }),
  fractionalMaxPool2d: (draw) => ({
    operands: [operand(draw, picture(draw, 2, 8))],
    args: [at(0), 2],
    options: { outputSize: 3 },
    compared: null,
    theirs: { name: "nn.functional.fractional_max_pool2d" },
  }),
  fractionalMaxPool3d: (draw) => ({
    operands: [operand(draw, picture(draw, 3, 8))],
    args: [at(0), 2],
    options: { outputSize: 3 },
    compared: null,
    theirs: { name: "nn.functional.fractional_max_pool3d" },
  }),
  interpolate(draw) {
    const mode = draw.pick(["nearest", "bilinear", "bilinear", "bicubic", "area"]);
    const scaleFactor = draw.pick([2, 2, 0.5, 1.5]);
    const shape = picture(draw, 2, 4).map((size, axis) => (axis < 2 ? size : Math.min(size, 128)));
    return {
      operands: [operand(draw, shape)],
      options: { scaleFactor, mode },
      gradients: draw.chance(0.2),
      slack: 16,
      theirs: { name: "nn.functional.interpolate" },
    };
  },
  gridSample(draw) {
    const [batch, channels, height, width] = picture(draw, 2) as [number, number, number, number];
    const grid = operand(draw, [batch, height, width, 2], { values: { low: -1, high: 1 } });
    const options = { mode: "bilinear", paddingMode: "zeros", alignCorners: false };
    return { operands: [operand(draw, [batch, channels, height, width]), grid], options, slack: 64 };
  },
  affineGrid(draw) {
    const [batch, side] = [draw.size(1, 64), draw.size(4, 128)];
    return {
      operands: [operand(draw, [batch, 2, 3])],
      args: [at(0), [batch, 3, side, side]],
      options: { alignCorners: false },
      slack: 8,
      theirs: { name: "nn.functional.affine_grid" },
    };
  },
  unfold(draw) {
    const x = operand(
      draw,
      picture(draw, 2).map((size, axis) => (axis === 1 ? Math.min(size, 64) : size)),
    );
    return {
      operands: [x],
      args: [at(0), 3],
      options: { padding: 1, stride: 2 },
      theirs: { name: "nn.functional.unfold" },
    };
  },
  fold(draw) {
    const [batch, channels, side] = [draw.size(1, 16), draw.size(1, 32), 2 * draw.size(2, 40)];
    const x = operand(draw, [batch, channels * 4, (side / 2) ** 2]);
    return {
      operands: [x],
      args: [at(0), [side, side], 2],
      options: { stride: 2 },
      theirs: { name: "nn.functional.fold" },
    };
  },
  pixelShuffle(draw) {
    const [batch, channels, ...sides] = picture(draw, 2) as [number, number, ...number[]];
    return { operands: [operand(draw, [batch, 4 * Math.ceil(channels / 4), ...sides])], args: [at(0), 2] };
  },
  pixelUnshuffle(draw) {
    const [batch, channels, ...sides] = picture(draw, 2) as [number, number, ...number[]];
    return { operands: [operand(draw, [batch, channels, ...sides.map((size) => 2 * (size >> 1))])], args: [at(0), 2] };
  },
  channelShuffle(draw) {
    const [batch, channels, ...sides] = picture(draw, 2) as [number, number, ...number[]];
    return { operands: [operand(draw, [batch, 4 * Math.ceil(channels / 4), ...sides])], args: [at(0), 4] };
  },
};
