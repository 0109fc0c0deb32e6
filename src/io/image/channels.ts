/** Converts pixels from sharp, which are row by row with channels last, to tensors. */

import { contiguous } from "../../ops/copy/copy.ts";
import { fromArray } from "../../ops/creation/tensor.ts";
import { permute } from "../../ops/view/permute.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ImageMetadata } from "./sharp.ts";

/** The channels of each pixel. */
export type ImageMode = "gray" | "grayAlpha" | "rgb" | "rgba";
export const imageModes = ["gray", "grayAlpha", "rgb", "rgba"] as const satisfies readonly ImageMode[];

/** The position of the channel axis: [C, H, W] or [H, W, C]. */
export type ChannelOrder = "first" | "last";

export const hasAlpha = (mode: ImageMode): boolean => mode === "grayAlpha" || mode === "rgba";

/** Returns the mode of the file. */
export function modeOf({ space, hasAlpha: transparent }: ImageMetadata): ImageMode {
  const isGray = space === "b-w" || space === "grey16";
  if (isGray) return transparent ? "grayAlpha" : "gray";
  return transparent ? "rgba" : "rgb";
}

/** Converts RGB or RGBA pixels to the channels of a mode. */
export function inMode(pixels: Uint8Array, mode: ImageMode): Uint8Array {
  if (mode === "rgb" || mode === "rgba") return pixels;
  const [from, to] = mode === "gray" ? [3, 1] : [4, 2];
  const result = new Uint8Array((pixels.length / from) * to);
  for (let source = 0, at = 0; at < result.length; source += from, at += to) {
    result[at] = luma(pixels[source], pixels[source + 1], pixels[source + 2]);
    if (to === 2) result[at + 1] = pixels[source + 3];
  }
  return result;
}

/**
 * Rounds 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601) to the nearest. The factors are multiples of 2⁻¹⁶ that add up to 1,
 * as in Pillow.
 */
const luma = (red: number, green: number, blue: number): number =>
  (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16;

/** Makes a tensor from pixels that are not shared. */
export function toTensor(pixels: Uint8Array, [height, width]: readonly [number, number], order: ChannelOrder): Tensor {
  const channels = pixels.length / (height * width);
  const x = fromArray(pixels, [height, width, channels]);
  return order === "last" ? x : contiguous(permute(x, [2, 0, 1]));
}
