/** The loss curve as a picture: SVG, and PNG made of it. */
import inter from "@expo-google-fonts/inter/400Regular/Inter_400Regular.ttf" with { type: "file" };
import type { Resvg } from "@resvg/resvg-wasm";
import program from "@resvg/resvg-wasm/index_bg.wasm" with { type: "file" };
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";

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
/** More points than the picture has columns are not seen. */
const MOST_POINTS = 2000;

/** Draws the losses over the steps: each one faint, their running mean strong, the held-out ones with points. */
export function drawCurve({ training, heldOut }: Curves): string {
  const shown = thinned(training.filter(isFinitePoint));
  const tested = heldOut.filter(isFinitePoint);
  const scales = scalesOf([...shown, ...tested]);
  const path = (points: readonly Point[]) => pathOf(points, scales);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="Inter, sans-serif" font-size="13" fill="${COLORS.text}">
<title>Loss over steps</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>
${axes(scales)}
<path class="training" d="${path(shown)}" fill="none" stroke="${COLORS.training}" stroke-opacity="0.25"/>
<path class="smoothed" d="${path(smoothed(shown))}" fill="none" stroke="${COLORS.training}" stroke-width="2"/>
<path class="held-out" d="${path(tested)}" fill="none" stroke="${COLORS.heldOut}" stroke-width="2"/>
${tested.map(({ step, loss }) => `<circle class="held-out" cx="${at(scales.x, step)}" cy="${at(scales.y, loss)}" r="3" fill="${COLORS.heldOut}"/>`).join("\n")}
${legend(shown.at(-1), tested.at(-1))}
</svg>
`;
}

/** The same picture as PNG, with a typeface that is part of the package, so that it is the same on every machine. */
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

let rendering: Promise<typeof Resvg> | undefined;

/** WebAssembly, compiled when a picture is first asked for. */
function renderer(): Promise<typeof Resvg> {
  rendering ??= (async () => {
    const { initWasm, Resvg } = await import("@resvg/resvg-wasm");
    await initWasm(await Bun.file(program).bytes());
    return Resvg;
  })();
  return rendering;
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

/** A coordinate, to a tenth of a pixel. */
const at = (scale: Scale, value: number): string => scale(value).toFixed(1);

const pathOf = (points: readonly Point[], { x, y }: Scales): string =>
  line<Point>(
    ({ step }) => x(step),
    ({ loss }) => y(loss),
  ).digits(1)(points) ?? "";

/** At most {@link MOST_POINTS}, each the mean of adjacent ones. */
function thinned(points: readonly Point[]): Point[] {
  const width = Math.ceil(points.length / MOST_POINTS);
  if (width <= 1) return [...points];
  return Array.from({ length: Math.ceil(points.length / width) }, (_, index) => {
    const part = points.slice(index * width, (index + 1) * width);
    return { step: part.at(-1)!.step, loss: part.reduce((sum, { loss }) => sum + loss, 0) / part.length };
  });
}

/** An exponential running mean over about a hundredth of the curve, unbiased at its start as Adam's means are. */
function smoothed(points: readonly Point[]): Point[] {
  const decay = 1 - 1 / Math.max(1, points.length / 100);
  let [mean, weight] = [0, 0];
  return points.map(({ step, loss }) => {
    [mean, weight] = [decay * mean + (1 - decay) * loss, decay * weight + (1 - decay)];
    return { step, loss: mean / weight };
  });
}

function axes({ x, y }: Scales): string {
  const [left, right, bottom] = [MARGIN.left, WIDTH - MARGIN.right, HEIGHT - MARGIN.bottom];
  const rows = y.ticks(6).map((loss) => {
    const height = at(y, loss);
    return `<path d="M${left},${height}H${right}" stroke="${COLORS.grid}"/><text x="${left - 8}" y="${height}" dy="4" text-anchor="end">${y.tickFormat(6)(loss)}</text>`;
  });
  const columns = x
    .ticks(8)
    .map((step) => `<text x="${at(x, step)}" y="${bottom + 20}" text-anchor="middle">${x.tickFormat(8)(step)}</text>`);
  const names = `<text x="${(left + right) / 2}" y="${HEIGHT - 8}" text-anchor="middle">step</text><text transform="translate(18 ${HEIGHT / 2}) rotate(-90)" text-anchor="middle">loss (nats a token)</text>`;
  return [...rows, ...columns, names].join("\n");
}

function legend(training: Point | undefined, heldOut: Point | undefined): string {
  const entry = (left: number, color: string, name: string, last: Point | undefined) =>
    `<path d="M${left},24h24" stroke="${color}" stroke-width="3"/><text x="${left + 32}" y="28">${name}${last ? ` ${last.loss.toFixed(3)}` : ""}</text>`;
  return [
    entry(MARGIN.left, COLORS.training, "training", training),
    entry(MARGIN.left + 180, COLORS.heldOut, "held out", heldOut),
  ].join("\n");
}
