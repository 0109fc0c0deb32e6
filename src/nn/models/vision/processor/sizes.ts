/** The size that an image is resized to, as Hugging Face's `transformers` computes it. */
import type { Kind } from "../../../../core/parameters.ts";
import type { ImageSize } from "./description.ts";

type Sides = readonly [height: number, width: number];

/** Rounds to the nearest integer, ties to even, as Python does. */
const toEven = (value: number): number => (value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value));

const isSide = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0 && Number(value) < 2 ** 16;
const isArea = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;
const isFlag = (value: unknown): boolean => typeof value === "boolean";
const isOptional = (value: unknown): boolean => value === undefined || isSide(value);
const both = { height: isSide, width: isSide };
/** The fields of each kind of size. */
const fields: Readonly<Record<ImageSize["kind"], Readonly<Record<string, (value: unknown) => boolean>>>> = {
  exact: both,
  within: both,
  shortest: { side: isSide, longest: isOptional, multiple: isOptional },
  longest: { side: isSide },
  patches: { patch: isSide, most: isSide },
  multiple: { ...both, multiple: isSide, keepsRatio: isFlag },
  area: { multiple: isSide, least: isArea, most: isArea },
};

/** @internal */
export const anImageSize: Kind<ImageSize> = {
  expected: `an object with a kind (${Object.keys(fields).join(", ")}) and its whole numbers above 0`,
  parse(value) {
    if (typeof value !== "object" || value === null) return undefined;
    const given: Record<string, unknown> = { ...value };
    const { kind } = given;
    if (typeof kind !== "string" || !Object.hasOwn(fields, kind)) return undefined;
    const rules = Object.entries(fields[kind as ImageSize["kind"]]);
    const isKnown = Object.keys(given).every((key) => key === "kind" || Object.hasOwn(fields[kind as "exact"], key));
    return isKnown && rules.every(([key, holds]) => holds(given[key])) ? (given as ImageSize) : undefined;
  },
};

/** @internal Returns the size to which an image is resized, at least 1 x 1. */
export function resizedSize(size: ImageSize, image: Sides): Sides {
  const [height, width] = sizes[size.kind](size as never, image);
  return [Math.max(1, height), Math.max(1, width)];
}

type Of<K extends ImageSize["kind"]> = Extract<ImageSize, { kind: K }>;

const sizes: { readonly [K in ImageSize["kind"]]: (size: Of<K>, image: Sides) => Sides } = {
  exact: ({ height, width }) => [height, width],
  shortest({ side, longest, multiple = 1 }, image) {
    const size = longest === undefined ? shortest(side, image) : bounded(side, longest, image);
    return [size[0] - (size[0] % multiple), size[1] - (size[1] % multiple)];
  },
  longest({ side }, image) {
    const scale = side / Math.max(...image);
    return [Math.trunc(image[0] * scale + 0.5), Math.trunc(image[1] * scale + 0.5)];
  },
  within({ height, width }, image) {
    const scale = Math.min(height / image[0], width / image[1]);
    return [Math.trunc(image[0] * scale), Math.trunc(image[1] * scale)];
  },
  area({ multiple, least, most }, [height, width]) {
    const area = toEven(height / multiple) * toEven(width / multiple) * multiple ** 2;
    if (area >= least && area <= most)
      return [toEven(height / multiple) * multiple, toEven(width / multiple) * multiple];
    if (area > most) {
      const scale = Math.sqrt((height * width) / most);
      const down = (side: number) => Math.max(multiple, Math.floor(side / scale / multiple) * multiple);
      return [down(height), down(width)];
    }
    const scale = Math.sqrt(least / (height * width));
    const up = (side: number) => Math.ceil((side * scale) / multiple) * multiple;
    return [up(height), up(width)];
  },
  patches: ({ patch, most }, image) => wholePatches(patch, most, image),
  multiple(size, image) {
    let [down, across] = [size.height / image[0], size.width / image[1]];
    if (size.keepsRatio) {
      const scale = Math.abs(1 - across) < Math.abs(1 - down) ? across : down;
      [down, across] = [scale, scale];
    }
    const fit = (side: number) => toEven(side / size.multiple) * size.multiple;
    return [fit(down * image[0]), fit(across * image[1])];
  },
};

function shortest(side: number, [height, width]: Sides): Sides {
  const [short, long] = width <= height ? [width, height] : [height, width];
  const longer = Math.trunc((side * long) / short);
  return width <= height ? [longer, side] : [side, longer];
}

/** Scales the shorter side to `side`, or to less if the longer side would exceed `longest`. */
function bounded(side: number, longest: number, [height, width]: Sides): Sides {
  const [short, long] = [Math.min(height, width), Math.max(height, width)];
  const raw = (long / short) * side > longest ? (longest * short) / long : undefined;
  const size = raw === undefined ? side : toEven(raw);
  if (short === size) return [height, width];
  const longer = Math.trunc(((raw ?? size) * long) / short);
  return width < height ? [longer, size] : [size, longer];
}

/** Finds the scale by bisection, with the bounds and the precision of `transformers`. */
function wholePatches(patch: number, most: number, [height, width]: Sides): Sides {
  const sideAt = (scale: number, side: number) => Math.max(1, Math.ceil((side * scale) / patch));
  let [low, high] = [1e-6, 100];
  while (high - low >= 1e-5) {
    const scale = (low + high) / 2;
    if (sideAt(scale, height) * sideAt(scale, width) <= most) low = scale;
    else high = scale;
  }
  return [sideAt(low, height) * patch, sideAt(low, width) * patch];
}
