import { printedBytes } from "../../core/printing.ts";
import { formatName } from "../../quant/formats.ts";
import { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { formatShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

type State = Tensor | QuantizedTensor;

/** Columns that are aligned to the right. */
const rightAligned = ["numbers", "bytes"];

/** @internal A module in the table, with the tensors that it directly holds. */
export interface SummaryLayer {
  /** The module's name; empty for the model itself. */
  readonly name: string;
  /** The name of the module's class. */
  readonly kind: string;
  readonly tensors: readonly (readonly [name: string, tensor: State])[];
}

/** @internal The printed form of a module: the tensors that it directly holds, and its submodules. */
export interface SummaryTree {
  readonly kind: string;
  readonly details: string;
  readonly tensors: readonly (readonly [name: string, tensor: State])[];
  readonly parts: readonly (readonly [name: string, part: SummaryTree])[];
}

/**
 * @internal Formats the tree of modules with shapes of tensors, and the totals. Equal consecutive parts share a line:
 * `(blocks.0 to blocks.11): 12 × Block(…)`.
 */
export function formatTree(tree: SummaryTree): string {
  const counted = new Set<State>();
  return `${formatNode(tree, counted)}\n${totals([...counted])}`;
}

function formatNode({ kind, details, tensors, parts }: SummaryTree, counted: Set<State>): string {
  const state = tensors.map(([name, tensor]) => {
    const text = `${name} ${formatShape(tensor.shape)}${noteOf(tensor, counted)}`;
    counted.add(tensor);
    return text;
  });
  const shapes = state.join(", ");
  if (parts.length === 0) return `${kind}(${details})${shapes ? `  ${shapes}` : ""}`;
  const printed = parts.map(([name, part]) => ({ first: name, last: name, times: 1, text: formatNode(part, counted) }));
  const lines = joined(printed).map(({ first, last, times, text }) =>
    times === 1 ? `(${first}): ${text}` : `(${first} to ${last}): ${times} × ${text}`,
  );
  const inner = [...(details ? [details] : []), ...(shapes ? [shapes] : []), ...lines];
  return [`${kind}(`, ...inner.map((line) => line.replaceAll("\n", "\n  "))].join("\n  ").concat("\n)");
}

interface Printed {
  readonly first: string;
  readonly last: string;
  readonly times: number;
  readonly text: string;
}

/** Merges runs of equal consecutive texts. */
function joined(parts: readonly Printed[]): Printed[] {
  const runs: Printed[] = [];
  for (const part of parts) {
    const before = runs.at(-1);
    if (before?.text !== part.text) runs.push(part);
    else runs[runs.length - 1] = { ...before, last: part.last, times: before.times + 1 };
  }
  return runs;
}

/**
 * @internal Formats the table of `Module.summary()`: one row for each module that directly holds tensors, and the
 * totals. `results` adds a column with the shapes of results, and rows for modules that returned one.
 */
export function formatSummary(layers: readonly SummaryLayer[], results?: ReadonlyMap<string, string>): string {
  const counted = new Set<State>();
  const header = ["layer", "kind", ...(results ? ["result"] : []), "state", "numbers", "bytes"];
  const rows = layers.flatMap(({ name, kind, tensors }) => {
    if (tensors.length === 0 && !results?.has(name)) return [];
    const result = results ? [results.get(name) ?? ""] : [];
    const untied = tensors.map(([, tensor]) => tensor).filter((tensor) => !counted.has(tensor));
    const state = tensors.map(
      ([tensorName, tensor]) => `${tensorName} ${formatShape(tensor.shape)}${noteOf(tensor, counted)}`,
    );
    for (const tensor of untied) counted.add(tensor);
    return [[name || "(itself)", kind, ...result, state.join(", "), ...figures(untied)]];
  });
  return [...aligned(header, rows), totals([...counted])].join("\n");
}

const noteOf = (tensor: State, counted: ReadonlySet<State>): string =>
  counted.has(tensor) ? " (tied)" : isTrained(tensor) ? "" : ` (${formatOf(tensor)}frozen)`;

const isTrained = (tensor: State): boolean => !(tensor instanceof QuantizedTensor) && tensor.requiresGrad;
const formatOf = (tensor: State): string => (tensor instanceof QuantizedTensor ? `${formatName(tensor.format)}, ` : "");

const sizeOf = (tensors: readonly State[]): number => tensors.reduce((sum, { size }) => sum + size, 0);
const bytesIn = (tensors: readonly State[]): number =>
  tensors.reduce(
    (sum, tensor) =>
      sum + (tensor instanceof QuantizedTensor ? tensor.byteLength : tensor.size * bytesOf(tensor.dtype)),
    0,
  );

const figures = (tensors: readonly State[]): [string, string] => [
  sizeOf(tensors).toLocaleString("en"),
  printedBytes(bytesIn(tensors)),
];

function totals(tensors: readonly State[]): string {
  const parameters = tensors.filter(isTrained);
  const buffers = tensors.filter((tensor) => !isTrained(tensor));
  const of = (what: string, some: readonly State[]) =>
    `${sizeOf(some).toLocaleString("en")} ${what}, ${printedBytes(bytesIn(some))}`;
  return [of("parameters", parameters), ...(buffers.length > 0 ? [of("in buffers", buffers)] : [])].join("; ");
}

/** Width of the table, in columns of a terminal. */
const TERMINAL = 80;
const GAP = "  ";
/** Minimum width of a text column. */
const NARROWEST = 9;

/** Pads every column, and draws a rule below the header. Cells that do not fit are wrapped. */
function aligned(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = widthsOf(header, rows);
  const lines = [header, ...rows].map((row) => linesOf(row, header, widths));
  const rule = widths.map((width) => "─".repeat(width)).join(GAP);
  return [...lines[0], rule, ...lines.slice(1).flat(), rule];
}

/** Returns the widths of the widest cells. The widest text columns are narrowed until the table fits. */
function widthsOf(header: readonly string[], rows: readonly (readonly string[])[]): number[] {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column].length)));
  const room = TERMINAL - GAP.length * (widths.length - 1);
  const narrowed = widths.map((width, column) => (rightAligned.includes(header[column]) ? 0 : width));
  for (let surplus = widths.reduce((sum, width) => sum + width, 0) - room; surplus > 0; surplus--) {
    const widest = narrowed.indexOf(Math.max(...narrowed));
    if (narrowed[widest] <= NARROWEST) break;
    narrowed[widest]--;
    widths[widest]--;
  }
  return widths;
}

function linesOf(row: readonly string[], header: readonly string[], widths: readonly number[]): string[] {
  const cells = row.map((cell, column) => wrapped(cell, widths[column]));
  const height = Math.max(...cells.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) =>
    cells
      .map((cell, column) => {
        const [text, width] = [cell[line] ?? "", widths[column]];
        return rightAligned.includes(header[column]) ? text.padStart(width) : text.padEnd(width);
      })
      .join(GAP),
  );
}

/** Splits text into lines of at most `width` characters, after a space or a dot where there is one. */
function wrapped(text: string, width: number): string[] {
  const lines = [""];
  const parts = text.split(/(?<=[ .])/).flatMap((part) => part.match(new RegExp(`.{1,${width}}`, "gs")) ?? []);
  for (const part of parts) {
    const longer = `${lines.at(-1)}${part}`;
    if (longer.trimEnd().length <= width) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  return lines.map((line) => line.trimEnd());
}
