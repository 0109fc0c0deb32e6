/** The dashboard page: numbers, three charts and samples, updated by the server's messages. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { RunEvent } from "../../events.ts";
import { formatBytes, formatCount, formatDuration } from "../../format.ts";
import { EVENTS_PATH, type Message } from "../protocol.ts";

const element = (id: string): HTMLElement => document.getElementById(id)!;
const show = (id: string, text: string): void => {
  element(id).textContent = text;
};

interface Series {
  readonly label: string;
  readonly color: string;
  readonly points?: boolean;
  /** The value at an event; undefined if the event has none. */
  of(event: RunEvent): number | undefined;
}

const fromZero = (_: uPlot, __: number, max: number | null): uPlot.Range.MinMax => [0, 1.05 * (max ?? 1)];

/** A chart over steps. */
class Chart {
  private readonly steps: number[] = [];
  private readonly values: (number | null)[][];
  private readonly plot: uPlot;

  constructor(
    private readonly parent: HTMLElement,
    title: string,
    private readonly series: readonly Series[],
    format: (value: number) => string,
  ) {
    this.values = series.map(() => []);
    const drawn = series.map(({ label, color, points = false }) => ({
      label,
      stroke: color,
      width: points ? 2 : 1,
      points: { show: points },
      spanGaps: true,
      value: (_: uPlot, value: number | null) => (value === null ? "" : format(value)),
    }));
    const ink = () => getComputedStyle(document.body).color;
    const axis = { stroke: ink, grid: { stroke: "#88888833" } };
    const values = (_: uPlot, ticks: number[]) => ticks.map(format);
    const options = {
      title,
      ...this.size(),
      scales: { x: { time: false }, y: { range: fromZero } },
      axes: [axis, { ...axis, values, size: 72 }],
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
    this.plot.setData([this.steps, ...this.values] as uPlot.AlignedData);
  }

  private size() {
    return { width: this.parent.clientWidth, height: 280 };
  }
}

const charts = [
  new Chart(
    element("loss-chart"),
    "Loss",
    [
      { label: "training", color: "#3b82f6", of: (event) => (event.kind === "step" ? event.loss : undefined) },
      {
        label: "held out",
        color: "#ea580c",
        points: true,
        of: (event) => (event.kind === "evaluation" ? event.loss : undefined),
      },
    ],
    (loss) => loss.toFixed(2),
  ),
  new Chart(
    element("speed-chart"),
    "Tokens per second",
    [{ label: "speed", color: "#16a34a", of: (event) => (event.kind === "step" ? event.tokensPerSecond : undefined) }],
    formatCount,
  ),
  new Chart(
    element("memory-chart"),
    "Memory",
    [
      { label: "tensors", color: "#9333ea", of: (event) => (event.kind === "step" ? event.liveBytes : undefined) },
      { label: "process", color: "#64748b", of: (event) => (event.kind === "step" ? event.residentBytes : undefined) },
    ],
    formatBytes,
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
  step({ step, loss, tokensPerSecond, secondsLeft, liveBytes }) {
    show("step", `${step} of ${total}`);
    show("loss", loss === null ? "not finite" : loss.toFixed(3));
    show("speed", formatCount(tokensPerSecond));
    show("left", formatDuration(secondsLeft));
    show("memory", formatBytes(liveBytes));
  },
  evaluation: ({ loss }) => show("held-out", loss.toFixed(3)),
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
