/** The dashboard page: numbers, three charts and samples, updated by the server's messages. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatBytes, formatCount, formatDuration } from "../../../core/format.ts";
import { type RunEvent, shownLoss } from "../../events.ts";
import { smooth } from "../../smooth.ts";
import { EVENTS_PATH, type Message } from "../protocol.ts";
import { bytesAt, distances as ticks, withDecimals } from "./ticks.ts";

const element = (id: string): HTMLElement => document.getElementById(id)!;
const show = (id: string, text: string): void => {
  element(id).textContent = text;
};

interface Series {
  readonly label: string;
  readonly color: string;
  readonly width?: number;
  readonly points?: boolean;
  /** Draws the moving average of the values. */
  readonly smoothed?: boolean;
  /** The value at an event; undefined if the event has none. */
  of(event: RunEvent): number | undefined;
}

interface Look {
  readonly title: string;
  /** The unit of the vertical axis. */
  readonly unit: string;
  readonly format: (value: number) => string;
  /** The possible distances of ticks. */
  readonly distances: readonly number[];
  /** Formats the label of a tick. */
  readonly tick: (value: number, distance: number) => string;
}

const fromZero = (_: uPlot, __: number, max: number | null): uPlot.Range.MinMax => [0, 1.05 * (max ?? 1)];
const PHONE_WIDTH = 480;
const FONT = "12px system-ui, sans-serif";

/** A chart over steps. */
class Chart {
  private readonly steps: number[] = [];
  private readonly values: (number | null)[][];
  private readonly plot: uPlot;

  constructor(
    private readonly parent: HTMLElement,
    { title, unit, format, distances, tick }: Look,
    private readonly series: readonly Series[],
  ) {
    this.values = series.map(() => []);
    const drawn = series.map(({ label, color, width = 1, points = false }) => ({
      label,
      stroke: color,
      width,
      points: { show: points },
      spanGaps: true,
      value: (_: uPlot, value: number | null) => (value === null ? "" : format(value)),
    }));
    const fonts = { font: FONT, labelFont: FONT, labelSize: 20 };
    const ink = () => getComputedStyle(document.body).color;
    const axis = { stroke: ink, grid: { stroke: "#88888833" }, ...fonts };
    const values = (_: uPlot, ticks: number[], __: number, ___: number, distance: number) =>
      ticks.map((value) => tick(value, distance));
    const options = {
      title,
      ...this.size(),
      scales: { x: { time: false }, y: { range: fromZero } },
      axes: [
        { ...axis, label: "step", incrs: [...ticks.steps], space: 60 },
        { ...axis, label: unit, incrs: [...distances], values, size: 60 },
      ],
    };
    this.plot = new uPlot({ ...options, series: [{ label: "step" }, ...drawn] }, [[], ...series.map(() => [])], parent);
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(parent);
  }

  add(event: RunEvent): void {
    const values = this.series.map((each) => each.of(event));
    if (values.every((value) => value === undefined)) return;
    if (this.steps.at(-1) !== event.step) {
      this.steps.push(event.step);
      for (const column of this.values) column.push(null);
    }
    for (const [index, value] of values.entries())
      if (value !== undefined) this.values[index]![this.steps.length - 1] = value;
  }

  draw(): void {
    const columns = this.values.map((column, index) => (this.series[index]!.smoothed ? smooth(column) : column));
    this.plot.setData([this.steps, ...columns] as uPlot.AlignedData);
  }

  private size() {
    const { clientWidth: width } = this.parent;
    return { width, height: width < PHONE_WIDTH ? 220 : 280 };
  }
}

const trainingLoss = (event: RunEvent) => (event.kind === "step" ? shownLoss(event) : undefined);

const charts = [
  new Chart(
    element("loss-chart"),
    {
      title: "Loss",
      unit: "bits per byte",
      format: (loss) => loss.toFixed(3),
      distances: ticks.numbers,
      tick: withDecimals,
    },
    [
      { label: "training", color: "#3b82f666", of: trainingLoss },
      { label: "smoothed", color: "#3b82f6", width: 2, smoothed: true, of: trainingLoss },
      {
        label: "held out",
        color: "#ea580c",
        width: 2,
        points: true,
        of: (event) => (event.kind === "evaluation" ? shownLoss(event) : undefined),
      },
    ],
  ),
  new Chart(
    element("speed-chart"),
    { title: "Speed", unit: "tokens per second", format: formatCount, distances: ticks.numbers, tick: formatCount },
    [{ label: "speed", color: "#16a34a", of: (event) => (event.kind === "step" ? event.tokensPerSecond : undefined) }],
  ),
  new Chart(
    element("memory-chart"),
    { title: "Memory", unit: "bytes", format: formatBytes, distances: ticks.bytes, tick: bytesAt },
    [
      { label: "tensors", color: "#9333ea", of: (event) => (event.kind === "step" ? event.liveBytes : undefined) },
      { label: "process", color: "#64748b", of: (event) => (event.kind === "step" ? event.residentBytes : undefined) },
    ],
  ),
];

let total = 0;

type Handlers = { readonly [Kind in RunEvent["kind"]]?: (event: Extract<RunEvent, { kind: Kind }>) => void };

const handlers: Handlers = {
  start({ steps, backend, parameters }) {
    total = steps;
    show("state", "running");
    show("backend", backend);
    show("parameters", formatCount(parameters));
  },
  step(event) {
    const { step, tokensPerSecond, secondsLeft, liveBytes } = event;
    const loss = shownLoss(event) as number | null; // null, since JSON has no NaN
    show("step", `${step} of ${total}`);
    show("loss", loss === null ? "not finite" : loss.toFixed(3));
    show("speed", formatCount(tokensPerSecond));
    show("left", formatDuration(secondsLeft));
    show("memory", formatBytes(liveBytes));
  },
  evaluation: (event) => show("held-out", shownLoss(event).toFixed(3)),
  sample: ({ step, prompt, text }) => prepend("samples", "pre", `step ${step}\n${prompt}${text}`),
  note: ({ step, text }) => prepend("notes", "span", `step ${step}: ${text}`),
  end: ({ reason }) => show("state", reason),
};

function handle(event: RunEvent): void {
  for (const chart of charts) chart.add(event);
  (handlers[event.kind] as ((event: RunEvent) => void) | undefined)?.(event);
}

/** Inserts text that a model wrote: as text, never as markup. */
function prepend(list: string, tag: string, text: string): void {
  const [item, body] = [document.createElement("li"), document.createElement(tag)];
  body.textContent = text;
  item.append(body);
  element(list).prepend(item);
}

// The page's address has the token.
const socket = new WebSocket(`ws://${location.host}${EVENTS_PATH}${location.search}`);
socket.onmessage = ({ data }) => {
  for (const event of JSON.parse(data) as Message) handle(event);
  for (const chart of charts) chart.draw();
};
socket.onclose = () => {
  if (element("state").textContent === "running") show("state", "the process has ended");
};
