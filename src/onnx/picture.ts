/** Draws a graph as an SVG: a box for each node, in the order in which values flow from top to bottom. */
import { counted } from "../core/plural.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Step } from "./graph.ts";
import type { OnnxValue } from "./model.ts";

/** The parts of a model that the picture shows. */
export interface Drawn {
  readonly steps: readonly Step[];
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly constants: ReadonlyMap<string, Tensor>;
}

/** In pixels. Text widths are estimated, because fonts can't be measured here. */
const FONT = { size: 12, small: 10, advance: 0.6 } as const;
const BOX = { padding: 10, height: 24, line: 14, radius: 6 } as const;
/** Longer texts are cut. */
const LONGEST = 36;
/** Layers of larger graphs are assigned by the longest path, which takes linear time. */
const LARGE = 400;

/** Fill colors by kind of operator; others are white. */
const fills: readonly (readonly [color: string, operators: RegExp])[] = [
  ["#dbeafe", /Conv|MatMul|Gemm|Einsum/],
  ["#ede9fe", /Attention|LSTM|GRU|RNN/],
  ["#dcfce7", /Norm|Softmax/],
  ["#fee2e2", /Relu|Gelu|Sigmoid|Tanh|Swish|Selu|Elu|Erf|Softplus|Mish/],
  ["#fef3c7", /Pool|^Reduce/],
  ["#f1f5f9", /Reshape|Transpose|Squeeze|Slice|Concat|Split|Gather|Flatten|Expand|Pad|Cast|Shape|Identity/],
];
const fillOf = (operator: string): string => fills.find(([, pattern]) => pattern.test(operator))?.[0] ?? "#ffffff";

interface Box {
  readonly title: string;
  /** Smaller lines below the title: shapes of weights, or the name of an input or output. */
  readonly lines: readonly string[];
  readonly fill: string;
}

/** Returns an SVG document that shows the graph. Graphs inside nodes, such as branches of `If`, are not drawn. */
export async function drawGraph(drawn: Drawn): Promise<string> {
  const { graphlib, layout } = await import("@dagrejs/dagre"); // on first use, since few programs draw graphs
  const boxes = boxesOf(drawn);
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({
    rankdir: "TB",
    nodesep: 24,
    ranksep: 32,
    marginx: 16,
    marginy: 16,
    ranker: boxes.size > LARGE ? "longest-path" : "tight-tree",
  });
  for (const [id, box] of boxes) graph.setNode(id, sizeOf(box));
  for (const [from, to, value] of edgesOf(drawn)) graph.setEdge(from, to, {}, value);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const size = [width, height].map((pixels) => Math.ceil(Number.isFinite(pixels) ? Math.max(pixels, 1) : 1));
  const paths = graph.edges().map((edge) => pathThrough((graph.edge(edge) as { points: readonly Point[] }).points));
  const shapes = [...boxes].map(([id, box]) => drawBox(box, graph.node(id)));
  const frame = `viewBox="0 0 ${size[0]} ${size[1]}" width="${size[0]}" height="${size[1]}"`;
  const text = `font-family="Inter, sans-serif" font-size="${FONT.size}" text-anchor="middle" fill="#0f172a"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${frame} ${text}>
<title>${counted(drawn.steps.length, "node")} of an ONNX graph</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${[...paths, ...shapes].join("\n")}
</svg>
`;
}

/** Boxes by id, in the order of the graph. */
function boxesOf({ steps, inputs, outputs, constants }: Drawn): Map<string, Box> {
  const boxes = new Map<string, Box>();
  const ofValue = (value: OnnxValue): Box => ({ title: value.name, lines: [typeOf(value)], fill: "#e2e8f0" });
  for (const value of inputs) boxes.set(`input ${value.name}`, ofValue(value));
  for (const [at, { operator, inputs: names }] of steps.entries()) {
    const weights = names.flatMap((name) => constants.get(name) ?? []).filter(({ size }) => size > 1);
    const lines = weights.map(({ shape }) => shape.join(" × "));
    boxes.set(`step ${at}`, { title: operator, lines, fill: fillOf(operator) });
  }
  for (const value of outputs) boxes.set(`output ${value.name}`, ofValue(value));
  return boxes;
}

const typeOf = ({ type = "sequence or optional", shape }: OnnxValue): string =>
  shape ? `${type} [${shape.map((size) => size ?? "?").join(", ")}]` : type;

type Edge = readonly [from: string, to: string, value: string];

/** Returns an edge from each value's origin to each step, or output of the graph, that uses it. */
function edgesOf({ steps, inputs, outputs }: Drawn): Edge[] {
  const makers = new Map(inputs.map(({ name }) => [name, `input ${name}`]));
  for (const [at, step] of steps.entries()) for (const name of step.outputs) makers.set(name, `step ${at}`);
  const edge = (value: string, to: string): Edge[] => {
    const from = value === "" ? undefined : makers.get(value);
    return from === undefined || from === to ? [] : [[from, to, value]];
  };
  return [
    ...steps.flatMap((step, at) => usedBy(step).flatMap((value) => edge(value, `step ${at}`))),
    ...outputs.flatMap(({ name }) => edge(name, `output ${name}`)),
  ];
}

/** The names of values that a node uses, each once: also those that graphs in its attributes use. */
function usedBy({ inputs, attributes }: Step): string[] {
  const inner = attributes.graphs().flatMap((graph) => [...graph.outputs, ...graph.steps.flatMap(usedBy)]);
  return [...new Set([...inputs, ...inner])];
}

const cut = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

function sizeOf({ title, lines }: Box): { width: number; height: number } {
  const widths = [cut(title).length * FONT.size, ...lines.map((line) => cut(line).length * FONT.small)];
  const width = Math.ceil(Math.max(...widths) * FONT.advance) + 2 * BOX.padding;
  return { width, height: BOX.height + lines.length * BOX.line };
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** The center of a box, and its size. */
interface Place extends Point {
  readonly width: number;
  readonly height: number;
}

const rounded = (value: number): string => `${Math.round(value * 10) / 10}`;

function drawBox({ title, lines, fill }: Box, { x, y, width, height }: Place): string {
  const [left, top] = [x - width / 2, y - height / 2];
  const corner = `x="${rounded(left)}" y="${rounded(top)}" width="${rounded(width)}" height="${rounded(height)}"`;
  const at = (line: number): string => `x="${rounded(x)}" y="${rounded(top + 16 + line * BOX.line)}"`;
  const below = lines.map(
    (line, index) => `<text ${at(index + 1)} font-size="${FONT.small}" fill="#475569">${escaped(cut(line))}</text>`,
  );
  const box = `<rect ${corner} rx="${BOX.radius}" fill="${fill}" stroke="#94a3b8"/>`;
  return `<g>${box}<text ${at(0)}>${escaped(cut(title))}</text>${below.join("")}</g>`;
}

/** Returns a smooth path: quadratic curves between the midpoints of the segments. */
function pathThrough(points: readonly Point[]): string {
  const [first, ...rest] = points as [Point, ...Point[]];
  const last = rest.at(-1) ?? first;
  const curves = rest.slice(0, -1).map((point, at) => {
    const next = rest[at + 1];
    const end = at === rest.length - 2 ? next : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    return `Q${place(point)} ${place(end)}`;
  });
  const path = curves.length > 0 ? curves.join("") : `L${place(last)}`;
  return `<path d="M${place(first)}${path}" fill="none" stroke="#94a3b8"/>`;
}

const place = ({ x, y }: Point): string => `${rounded(x)},${rounded(y)}`;

/** XML allows no control characters, and no unpaired surrogates. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\p{Cc}\ufffe\uffff]/gu, "�")
    .replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
