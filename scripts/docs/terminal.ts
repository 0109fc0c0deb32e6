/**
 * Draws the output of a command as a picture of a terminal: `bun run demo | bun scripts/docs/terminal.ts demo.svg`.
 * Characters are placed on a grid. Braille characters of curves become dots and box-drawing characters become lines, so
 * the font does not matter.
 */

const [column, row, margin] = [8, 18, 20] as const;

/** Returns the lines as SVG, without control sequences and overwritten progress bars. */
export function terminalPicture(text: string, title: string): string {
  const lines = text.trimEnd().split("\n").map(shown);
  const width = 2 * margin + column * Math.max(80, ...lines.map(({ length }) => length));
  const height = 2 * margin + row * lines.length;
  const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
  const style = `font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${style} fill="#e2e8f0">
<title>${escaped(title)}</title>
<rect width="${width}" height="${height}" rx="8" fill="#0f172a"/>
${lines.flatMap((line, index) => drawn(line, margin + row * (index + 0.75))).join("\n")}
</svg>
`;
}

const shown = (line: string): string => Bun.stripANSI(line.split("\r").findLast((part) => part.trim()) ?? "").trimEnd();

/** Draws words and dots at their positions. */
function drawn(line: string, baseline: number): string[] {
  const x = (at: number) => margin + column * at;
  const words = [...line.matchAll(/[^\s\u2500-\u28ff]+(?: [^\s\u2500-\u28ff]+)*/gu)].map(({ 0: word, index }) => {
    const place = `x="${x(index)}" y="${baseline}" textLength="${column * word.length}"`;
    return `<text ${place} xml:space="preserve">${escaped(word)}</text>`;
  });
  const dots = [...line].flatMap((character, at) => {
    const bits = character.codePointAt(0)! - 0x2800;
    return bits > 0 && bits < 256 ? brailleDots(bits, x(at), baseline - row * 0.75) : [];
  });
  const path = dots.map(([cx, cy]) => `M${cx} ${cy}h0`).join("");
  const curve = path && `<path d="${path}" stroke="#38bdf8" stroke-width="2.6" stroke-linecap="round"/>`;
  const bars = [...line.matchAll(/█+|░+/gu)].map(({ 0: bar, index }) => {
    const fill = bar.startsWith("█") ? "#38bdf8" : "#334155";
    return `<rect x="${x(index)}" y="${baseline - 11}" width="${column * bar.length}" height="13" fill="${fill}"/>`;
  });
  const strokes = [...line].flatMap((character, at) =>
    (boxes[character] ?? []).map(([dx, dy]) => `M${x(at + 0.5)} ${baseline - row / 4}l${dx * column} ${dy * row}`),
  );
  const frame = strokes.length > 0 && `<path d="${strokes.join("")}" stroke="#64748b"/>`;
  return [...words, ...bars, ...(curve ? [curve] : []), ...(frame ? [frame] : [])];
}

/** The parts of a line from the center of a character: to the right, left, top or bottom, as fractions of its size. */
const boxes: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  "│": [
    [0, -0.5],
    [0, 0.5],
  ],
  "─": [
    [-0.5, 0],
    [0.5, 0],
  ],
  "┤": [
    [0, -0.5],
    [0, 0.5],
    [-0.5, 0],
  ],
  "╰": [
    [0, -0.5],
    [0.5, 0],
  ],
};

/** Dots 1 to 3 are the left column, 4 to 6 the right one, 7 and 8 the last row (Unicode 16.0, Braille Patterns). */
function brailleDots(bits: number, left: number, top: number): [number, number][] {
  const places = [0, 1, 2, 0, 1, 2, 3, 3].map((down, bit) => [bit < 3 || bit === 6 ? 0 : 1, down] as const);
  return places
    .filter((_, bit) => bits & (1 << bit))
    .map(([right, down]) => [
      left + column * (0.25 + 0.5 * right),
      Number((top + row * (0.125 + 0.25 * down)).toFixed(2)),
    ]);
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

if (import.meta.main) {
  const [path, title = "What a command printed"] = process.argv.slice(2);
  if (!path) throw new Error("expected the path of the picture");
  await Bun.write(path, terminalPicture(await Bun.stdin.text(), title));
}
