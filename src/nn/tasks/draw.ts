/** Draws the results of image models. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber, anObject, listOf, text } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { DetectedObject } from "./detect_objects.ts";

const readMap = parameters("drawSegmentation", { map: operand(aTensor) });

/**
 * Draws the labels of pixels: each label has a color, the same in every picture.
 *
 * @param map integers [height, width], from `segmentImage`
 * @returns uint8 [3, height, width], for `io.saveImage`
 *
 * @example
 * await io.saveImage("map.png", nn.drawSegmentation(map));
 *
 * @throws {ShapeError} for another rank. @throws {ArgumentError} for floats.
 */
export function drawSegmentation(map: Tensor): Tensor<"uint8">;
export function drawSegmentation(...values: unknown[]): Tensor {
  const { map } = readMap(values);
  const [height, width] = sidesOf("drawSegmentation", map);
  if (isFloat(map.dtype))
    throw new ArgumentError("drawSegmentation", "notInteger", `expected integers, got ${map.describe()}`);
  const labels = map.dataSync();
  const pixels = new Uint8Array(3 * height * width);
  for (let at = 0; at < height * width; at++) {
    const color = colorOf(Number(labels[at]));
    for (const [channel, value] of color.entries()) pixels[channel * height * width + at] = value;
  }
  return tensor(pixels, { shape: [3, height, width] });
}

const readDepth = parameters("drawDepth", { depth: operand(aTensor) });

/**
 * Draws depths in shades of gray: black for the least depth, white for the largest.
 *
 * @param depth floats [height, width], from `estimateDepth`
 * @returns uint8 [1, height, width], for `io.saveImage`
 *
 * @example
 * await io.saveImage("depth.png", nn.drawDepth(depth));
 *
 * @throws {ShapeError} for another rank. @throws {ArgumentError} for depths that are not finite.
 */
export function drawDepth(depth: Tensor): Tensor<"uint8">;
export function drawDepth(...values: unknown[]): Tensor {
  const { depth } = readDepth(values);
  const [height, width] = sidesOf("drawDepth", depth);
  const numbers = Float64Array.from(depth.dataSync(), Number);
  if (!numbers.every(Number.isFinite))
    throw new ArgumentError("drawDepth", "notFinite", "expected finite depths, got infinity or NaN");
  let [least, most] = [Infinity, -Infinity];
  for (const value of numbers) [least, most] = [Math.min(least, value), Math.max(most, value)];
  const scale = most > least ? 255 / (most - least) : 0;
  const pixels = Uint8Array.from(numbers, (value) => Math.round((value - least) * scale));
  return tensor(pixels, { shape: [1, height, width] });
}

const readObjects = parameters("drawObjects", {
  objects: operand(listOf(anObject<DetectedObject>("an object of detectObjects"), "a list of objects")),
  width: named(aNumber(count)),
  height: named(aNumber(count)),
  href: named(text),
});

/** Options of {@link drawObjects}. */
export interface DrawObjectsOptions {
  /** The width of the image in pixels. */
  readonly width: number;
  /** The height of the image in pixels. */
  readonly height: number;
  /** The image behind the boxes: a URL, such as `data:image/png;base64,…`. Default: none. */
  readonly href?: string | undefined;
}

/**
 * Draws the boxes of objects with their labels and probabilities.
 *
 * @returns an SVG file
 *
 * @example
 * const [objects] = await nn.detectObjects(model, ["street.jpg"]);
 * await Bun.write("boxes.svg", nn.drawObjects(objects, { width: 640, height: 480, href: "street.jpg" }));
 *
 * @throws {ArgumentError} for a missing width or height, and objects without a box.
 */
export function drawObjects(objects: readonly DetectedObject[], options: DrawObjectsOptions): string;
export function drawObjects(...values: unknown[]): string {
  const { objects, width, height, href } = readObjects(values);
  if (width === undefined || height === undefined)
    throw new ArgumentError("drawObjects", "noSize", "expected the width and the height of the image");
  const size = `width="${width}" height="${height}"`;
  const labels = [...new Set(objects.map(({ label }) => label))];
  const boxes = objects.map((object) => boxOf(object, colorOf(labels.indexOf(object.label) + 1), height));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${size}>`,
    ...(href === undefined ? [] : [`<image href="${escaped(href)}" ${size}/>`]),
    ...boxes,
    "</svg>\n",
  ].join("\n");
}

function boxOf(object: DetectedObject, color: readonly number[], height: number): string {
  const { left, top, right, bottom } = object.box ?? {};
  if (![left, top, right, bottom, object.score].every(Number.isFinite))
    throw new ArgumentError("drawObjects", "noBox", "expected objects of detectObjects, got one without a box");
  const font = Math.max(8, height / 40);
  const paint = `rgb(${color.join(" ")})`;
  const rounded = (value: number) => `${Math.round(100 * value) / 100}`;
  const [x, y] = [rounded(left), rounded(top)];
  const [across, down] = [rounded(right - left), rounded(bottom - top)];
  const caption = `${escaped(object.label)} ${object.score.toFixed(2)}`;
  return (
    `<rect x="${x}" y="${y}" width="${across}" height="${down}" fill="none" stroke="${paint}" ` +
    `stroke-width="${rounded(font / 6)}"/>` +
    `<text x="${x}" y="${rounded(Math.max(font, top - font / 4))}" font-family="sans-serif" ` +
    `font-size="${rounded(font)}" fill="${paint}">${caption}</text>`
  );
}

const escaped = (value: string): string => Bun.escapeHTML(value);

function sidesOf(operation: string, x: Tensor): readonly [height: number, width: number] {
  if (x.rank === 2) return tupleOf(x.shape, 2);
  throw new ShapeError(operation, "wrongShape", `expected [height, width], got ${x.describe()}`);
}

/**
 * Returns PASCAL VOC's color of a label: the bits of the label's index are distributed over red, green and blue, and
 * the lowest bits become the highest bits of a color.
 */
function colorOf(index: number): readonly [red: number, green: number, blue: number] {
  const color: [number, number, number] = [0, 0, 0];
  for (let [bits, shift] = [index, 7]; bits > 0 && shift >= 0; bits >>= 3, shift--)
    for (const channel of [0, 1, 2] as const) color[channel] |= ((bits >> channel) & 1) << shift;
  return color;
}
