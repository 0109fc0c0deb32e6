/** Draws the loss curve as an SVG, and renders it as a PNG. */

import inter from "@expo-google-fonts/inter/400Regular/Inter_400Regular.ttf" with { type: "file" };
import type { Resvg } from "@resvg/resvg-wasm";
import program from "@resvg/resvg-wasm/index_bg.wasm" with { type: "file" };
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { lastElement } from "../core/collections.ts";
import { smooth } from "./smooth.ts";

/** The unit of losses on text. It makes models with different tokenizers comparable. */
export const BITS_PER_BYTE = "bits per byte";

/** The loss of a step. */
export interface Point {
  readonly step: number;
  readonly loss: number;
}

export interface Curves {
  readonly training: readonly Point[];
  readonly heldOut: readonly Point[];
}

const [WIDTH, HEIGHT] = [960, 540];
const MARGIN = { top: 48, right: 24, bottom: 48, left: 64 } as const;
const COLORS = { training: "#3b82f6", heldOut: "#ea580c", text: "#334155", grid: "#e2e8f0" } as const;
/** Longer curves are downsampled. The picture has fewer columns than this. */
const MAX_POINTS = 2000;

/** Draws the losses over the steps: training losses faint, their running mean bold, and held-out losses with dots. */
export function drawCurve({ training, heldOut }: Curves, unit: string = BITS_PER_BYTE): string {
  const shown = downsample(training.filter(isFinitePoint));
  const evaluated = heldOut.filter(isFinitePoint);
  const scales = scalesOf([...shown, ...evaluated]);
  const path = (points: readonly Point[]) => pathOf(points, scales);
  const size = `viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}"`;
  const text = `font-family="Inter, sans-serif" font-size="13" fill="${COLORS.text}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${text}>
<title>Loss over steps</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>
${axes(scales, unit)}
<path class="training" d="${path(shown)}" fill="none" stroke="${COLORS.training}" stroke-opacity="0.25"/>
<path class="smoothed" d="${path(smoothed(shown))}" fill="none" stroke="${COLORS.training}" stroke-width="2"/>
<path class="held-out" d="${path(evaluated)}" fill="none" stroke="${COLORS.heldOut}" stroke-width="2"/>
${evaluated.map((point) => dotAt(point, scales)).join("\n")}
${legend(shown.at(-1), evaluated.at(-1))}
</svg>
`;
}

const dotAt = ({ step, loss }: Point, { x, y }: Scales): string =>
  `<circle class="held-out" cx="${pixel(x, step)}" cy="${pixel(y, loss)}" r="3" fill="${COLORS.heldOut}"/>`;

/**
 * Renders the picture as a PNG. The typeface is part of the package, so that the result is the same on every machine.
 */
export async function toPng(svg: string): Promise<Uint8Array> {
  const [Resvg, typeface] = await Promise.all([renderer(), Bun.file(inter).bytes()]);
  const font = { fontBuffers: [typeface], loadSystemFonts: false, defaultFontFamily: "Inter" };
  const picture = new Resvg(svg, { font, fitTo: { mode: "width", value: 2 * WIDTH } });
  try {
    return picture.render().asPng();
  } finally {
    picture.free();
  }
}

let loading: Promise<typeof Resvg> | undefined;

/** The renderer, a WebAssembly module that is loaded on first use. */
function renderer(): Promise<typeof Resvg> {
  loading ??= (async () => {
    const { initWasm, Resvg } = await import("@resvg/resvg-wasm");
    await initWasm(await Bun.file(program).bytes());
    return Resvg;
  })();
  return loading;
}

type Scale = ReturnType<typeof scaleLinear<number, number>>;
interface Scales {
  readonly x: Scale;
  readonly y: Scale;
}

const isFinitePoint = ({ loss }: Point): boolean => Number.isFinite(loss);

function scalesOf(points: readonly Point[]): Scales {
  const steps = points.map(({ step }) => step);
  const losses = points.map(({ loss }) => loss);
  const x = scaleLinear([0, Math.max(1, ...steps)], [MARGIN.left, WIDTH - MARGIN.right]);
  const y = scaleLinear([Math.min(0, ...losses), Math.max(1, ...losses)], [HEIGHT - MARGIN.bottom, MARGIN.top]).nice();
  return { x, y };
}

/** A coordinate, rounded to a tenth of a pixel. */
const pixel = (scale: Scale, value: number): string => scale(value).toFixed(1);

const pathOf = (points: readonly Point[], { x, y }: Scales): string =>
  line<Point>(
    ({ step }) => x(step),
    ({ loss }) => y(loss),
  ).digits(1)(points) ?? "";

/** At most {@link MAX_POINTS} points, each the mean of adjacent ones. */
function downsample(points: readonly Point[]): Point[] {
  const width = Math.ceil(points.length / MAX_POINTS);
  if (width <= 1) return [...points];
  return Array.from({ length: Math.ceil(points.length / width) }, (_, index) => {
    const part = points.slice(index * width, (index + 1) * width);
    return { step: lastElement(part).step, loss: part.reduce((sum, { loss }) => sum + loss, 0) / part.length };
  });
}

/** Returns points with smoothed losses. Non-finite ones were removed before. */
function smoothed(points: readonly Point[]): Point[] {
  const losses = smooth(points.map(({ loss }) => loss));
  return points.map(({ step }, index) => ({ step, loss: losses[index]! }));
}

function axes({ x, y }: Scales, unit: string): string {
  const [left, right, bottom] = [MARGIN.left, WIDTH - MARGIN.right, HEIGHT - MARGIN.bottom];
  const rows = y.ticks(6).flatMap((loss) => {
    const height = pixel(y, loss);
    const label = y.tickFormat(6)(loss);
    return [
      `<path d="M${left},${height}H${right}" stroke="${COLORS.grid}"/>`,
      `<text x="${left - 8}" y="${height}" dy="4" text-anchor="end">${label}</text>`,
    ];
  });
  const columns = x.ticks(8).map((step) => {
    const label = x.tickFormat(8)(step);
    return `<text x="${pixel(x, step)}" y="${bottom + 20}" text-anchor="middle">${label}</text>`;
  });
  const sideways = `transform="translate(18 ${HEIGHT / 2}) rotate(-90)"`;
  const titles = [
    `<text x="${(left + right) / 2}" y="${HEIGHT - 8}" text-anchor="middle">step</text>`,
    `<text ${sideways} text-anchor="middle">loss (${unit})</text>`,
  ];
  return [...rows, ...columns, ...titles].join("\n");
}

function legend(training: Point | undefined, heldOut: Point | undefined): string {
  const entry = (left: number, color: string, name: string, last: Point | undefined) => {
    const label = last ? `${name} ${last.loss.toFixed(3)}` : name;
    return `<path d="M${left},24h24" stroke="${color}" stroke-width="3"/><text x="${left + 32}" y="28">${label}</text>`;
  };
  return [
    entry(MARGIN.left, COLORS.training, "training", training),
    entry(MARGIN.left + 180, COLORS.heldOut, "held out", heldOut),
  ].join("\n");
}
