/** Plots as SVG: axes with ticks and titles, and any marks drawn on them; and image files. */
import { scaleLinear } from "d3-scale";
import type { Tensor } from "../src/index.ts";
import { toPng } from "../src/train/curve.ts";

export const [width, height] = [960, 540];
const margin = { top: 56, right: 24, bottom: 56, left: 64 };
const ink = "#334155";

export type Scale = ReturnType<typeof scaleLinear<number, number>>;

export interface Plot {
  readonly title: string;
  readonly x: { readonly title: string; readonly domain: readonly [number, number] };
  readonly y: { readonly title: string; readonly domain: readonly [number, number] };
  /** The width of the plot in pixels from the left. Default: the whole picture. */
  readonly right?: number;
  /** Returns the marks as SVG, given the scales. */
  readonly marks: (x: Scale, y: Scale) => string;
}

/** Draws a picture with one plot, and optional further SVG. */
export function draw(plot: Plot, more = ""): string {
  const right = (plot.right ?? width) - margin.right;
  const x = scaleLinear(plot.x.domain, [margin.left, right]);
  const y = scaleLinear(plot.y.domain, [height - margin.bottom, margin.top]);
  const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="Inter, sans-serif" font-size="13" fill="${ink}">
<title>${plot.title}</title>
<rect width="${width}" height="${height}" fill="white"/>
<text x="${margin.left}" y="28" font-size="16">${plot.title}</text>
${axes(plot, x, y, right)}
${plot.marks(x, y)}
${more}
</svg>
`;
}

function axes(plot: Plot, x: Scale, y: Scale, right: number): string {
  const bottom = height - margin.bottom;
  const rows = y
    .ticks(6)
    .flatMap((value) => [
      `<path d="M${margin.left},${y(value).toFixed(1)}H${right}" stroke="#e2e8f0"/>`,
      `<text x="${margin.left - 8}" y="${y(value).toFixed(1)}" dy="4" text-anchor="end">${value}</text>`,
    ]);
  const columns = x
    .ticks(8)
    .map((value) => `<text x="${x(value).toFixed(1)}" y="${bottom + 20}" text-anchor="middle">${value}</text>`);
  const sideways = `transform="translate(18 ${(margin.top + bottom) / 2}) rotate(-90)"`;
  return [
    ...rows,
    ...columns,
    `<text x="${(margin.left + right) / 2}" y="${height - 12}" text-anchor="middle">${plot.x.title}</text>`,
    `<text ${sideways} text-anchor="middle">${plot.y.title}</text>`,
  ].join("\n");
}

/** Writes a picture in the format of its file name: `.svg`, or `.png` at twice the size. */
export async function save(path: string, svg: string): Promise<void> {
  await Bun.write(path, path.endsWith(".svg") ? svg : await toPng(svg));
  console.log(`wrote ${path}`);
}

export const numbersOf = (tensor: Tensor): number[] => Array.from(tensor.dataSync() as Float32Array);

/**
 * An image with `columns` cells per row, row by row, each with a color. Each color is one path, which keeps the file
 * small.
 */
export function imageOf(colors: readonly string[], columns: number, side: number): string {
  const paths = new Map<string, string>();
  for (let start = 0, end = 0; start < colors.length; start = end) {
    const color = colors[start];
    const rowEnd = start - (start % columns) + columns;
    while (end < rowEnd && colors[end] === color) end++;
    const [x, y, width] = [start % columns, Math.floor(start / columns), end - start].map(
      (n) => +(n * side).toFixed(1),
    );
    paths.set(color, `${paths.get(color) ?? ""}M${x},${y}h${width}v${side}h-${width}z`);
  }
  const drawn = [...paths].map(([color, d]) => `<path d="${d}" fill="${color}"/>`).join("");
  return `<g shape-rendering="crispEdges">${drawn}</g>`;
}

/** Points as one path of round strokes. */
export function dotsOf(points: readonly (readonly [x: number, y: number])[], radius: number, color: string): string {
  const d = points.map(([x, y]) => `M${x.toFixed(1)},${y.toFixed(1)}h0`).join("");
  return `<path d="${d}" stroke="${color}" stroke-width="${2 * radius}" stroke-linecap="round"/>`;
}

/** Draws digits of 28×28 pixels in a grid, dark where there is ink, from 0 to 1, in eight shades. */
export function drawDigits(title: string, ink: readonly number[], columns: number, cell: number): string {
  const [pixels, side] = [28 * 28, 28 * cell];
  const count = ink.length / pixels;
  const digits = Array.from({ length: count }, (_, at) => {
    const colors = ink.slice(at * pixels, (at + 1) * pixels).map((value) => {
      const shade = Math.round(255 - 34 * Math.round(Math.max(0, Math.min(value, 1)) * 7))
        .toString(16)
        .padStart(2, "0");
      return `#${shade}${shade}${shade}`;
    });
    const place = `translate(${(at % columns) * side} ${Math.floor(at / columns) * side})`;
    return `<g transform="${place}">${imageOf(colors, 28, cell)}</g>`;
  });
  const [width, height] = [columns * side, Math.ceil(count / columns) * side];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<title>${title}</title>
${digits.join("\n")}
</svg>
`;
}
