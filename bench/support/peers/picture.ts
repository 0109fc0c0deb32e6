/**
 * Draws a dot for each row and number of threads. The axis is logarithmic: the other library's time divided by
 * Orchard's.
 */
import { scaleLog } from "d3-scale";
import type { Row } from "./run.ts";

const LINE = 18;
const [LEFT, WIDTH, TOP] = [300, 560, 56] as const;
/** Lighter colors are fewer threads. */
const COLORS = ["#93c5fd", "#3b82f6", "#1d4ed8", "#1e3a8a", "#0f172a"] as const;
const TICKS = [0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32] as const;

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** @returns an SVG of PyTorch's time divided by Orchard's, for the rows that have it */
export function drawRatios(rows: readonly Row[], peer = "pytorch"): string {
  const compared = rows.filter(({ ratios }) => ratios[peer] !== undefined);
  const names = [...new Set(compared.map(({ name }) => name))];
  const counts = [...new Set(compared.map(({ threads }) => threads))].sort((one, other) => one - other);
  const height = TOP + names.length * LINE + 24;
  const x = scaleLog([TICKS[0], TICKS.at(-1)!], [LEFT, LEFT + WIDTH]).clamp(true);
  const y = (name: string): number => TOP + names.indexOf(name) * LINE + LINE / 2;
  const color = (threads: number): string => COLORS[Math.min(counts.indexOf(threads), COLORS.length - 1)];
  const title = `Time of ${peer} over ours (right of 1: ours is faster)`;
  const ticks = TICKS.map(
    (value) =>
      `<line x1="${x(value)}" y1="${TOP}" x2="${x(value)}" y2="${height - 24}" stroke="#0f172a" ` +
      `stroke-opacity="${value === 1 ? 0.7 : 0.12}"/>` +
      `<text x="${x(value)}" y="${height - 8}" text-anchor="middle">${value}</text>`,
  );
  const labels = names.map(
    (name) => `<text x="${LEFT - 12}" y="${y(name) + 4}" text-anchor="end">${escaped(name)}</text>`,
  );
  const dots = compared.map(
    ({ name, threads, ratios }) =>
      `<circle cx="${x(ratios[peer])}" cy="${y(name)}" r="5" fill="${color(threads)}">` +
      `<title>${escaped(name)}, ${threads} threads: ${ratios[peer].toFixed(2)}</title></circle>`,
  );
  const legend = counts.map(
    (threads, at) =>
      `<circle cx="${LEFT + at * 104}" cy="40" r="5" fill="${color(threads)}"/>` +
      `<text x="${LEFT + at * 104 + 12}" y="44">${threads} thread${threads === 1 ? "" : "s"}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${LEFT + WIDTH + 40} ${height}" ` +
      `font-family="sans-serif" font-size="12" fill="#0f172a">`,
    `<title>${title}</title>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="${LEFT}" y="22" font-size="15">${title}</text>`,
    ...legend,
    ...ticks,
    ...labels,
    ...dots,
    "</svg>\n",
  ].join("\n");
}
