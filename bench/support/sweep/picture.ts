/** Draws a dot for each case, by family: PyTorch's time divided by Orchard's, over the size of the largest operand. */
import { scaleLog } from "d3-scale";
import type { Row } from "./run.ts";

const [LEFT, WIDTH, HEIGHT, TOP] = [56, 720, 420, 64] as const;
const COLORS = "#1d4ed8 #b45309 #15803d #b91c1c #7c3aed #0891b2 #4d7c0f #be185d #64748b #92400e #0f172a #d97706".split(
  " ",
);
const RATIOS = [0.03, 0.1, 0.25, 0.5, 1, 2, 4, 10, 30] as const;
const SIZES = [1, 64, 4096, 2 ** 18, 2 ** 24] as const;

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** @returns an SVG */
export function drawSweep(rows: readonly Row[]): string {
  const families = [...new Set(rows.map(({ family }) => family))].sort();
  const x = scaleLog([SIZES[0], SIZES.at(-1)!], [LEFT, LEFT + WIDTH]).clamp(true);
  const y = scaleLog([RATIOS[0], RATIOS.at(-1)!], [TOP + HEIGHT, TOP]).clamp(true);
  const color = (family: string): string => COLORS[families.indexOf(family) % COLORS.length];
  const title = "PyTorch's time over Orchard's, by elements of the largest operand (above 1: Orchard is faster)";
  const lines = RATIOS.map(
    (ratio) =>
      `<line x1="${LEFT}" x2="${LEFT + WIDTH}" y1="${y(ratio)}" y2="${y(ratio)}" stroke="#0f172a" ` +
      `stroke-opacity="${ratio === 1 ? 0.7 : 0.12}"/>` +
      `<text x="${LEFT - 8}" y="${y(ratio) + 4}" text-anchor="end">${ratio}</text>`,
  );
  const ticks = SIZES.map(
    (size) => `<text x="${x(size)}" y="${TOP + HEIGHT + 20}" text-anchor="middle">${size.toLocaleString("en")}</text>`,
  );
  const dots = rows.map(
    ({ family, elements, ratio, name, threads }) =>
      `<circle cx="${x(elements).toFixed(1)}" cy="${y(ratio).toFixed(1)}" r="3.5" fill="${color(family)}">` +
      `<title>${escaped(name)}, ${threads} threads: ${ratio.toFixed(2)}</title></circle>`,
  );
  const legend = families.map((family, at) => {
    const [left, top] = [LEFT + WIDTH + 24, TOP + at * 22];
    return (
      `<circle cx="${left}" cy="${top}" r="5" fill="${color(family)}"/>` +
      `<text x="${left + 12}" y="${top + 4}">${family}</text>`
    );
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${LEFT + WIDTH + 150} ${TOP + HEIGHT + 36}" ` +
      `font-family="sans-serif" font-size="12" fill="#0f172a">`,
    `<title>${title}</title>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="${LEFT}" y="28" font-size="15">${title}</text>`,
    ...lines,
    ...ticks,
    `<g fill-opacity="0.6">`,
    ...dots,
    "</g>",
    ...legend,
    "</svg>\n",
  ].join("\n");
}
