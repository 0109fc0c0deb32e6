/**
 * `ORCHARD_TRACE=file.json`: writes a trace for https://ui.perfetto.dev.
 *
 * Source of the format: "Trace Event Format", Google, 2016. `X` is a span, `C` a counter, `b` and `e` the ends of an
 * asynchronous span, `M` a name. Times are in microseconds.
 */
import type {
  Activity,
  Allocation,
  Completion,
  ObservedTensor,
  OperationRun,
  Recorder,
  TicketRange,
} from "./observer.ts";
import { TraceFile } from "./trace_file.ts";

const now = (): number => performance.now() * 1000;

export class Trace implements Recorder {
  private readonly file: TraceFile;
  private readonly allocatedBytes = { shared: 0, private: 0, host: 0, script: 0 };
  /** Command buffers that may not be complete yet, and the last one that was seen. */
  private readonly openTickets = new Set<number>();
  private lastTicket = 0;
  private activities = 0;
  private completion: Completion = () => undefined;

  /** @param thread 0 for the main thread; other threads write to separate files */
  constructor(
    path: string,
    private readonly thread: number,
  ) {
    this.file = new TraceFile(fileOf(path, thread));
    this.name("process_name", `orchard ${process.pid}`);
    this.name("thread_name", thread === 0 ? "main" : `worker ${thread}`);
    process.on("exit", () => this.closeTickets());
  }

  ran({
    operation,
    within,
    backend,
    reason,
    inputs,
    outputs,
    start,
    milliseconds,
    copies,
    ...more
  }: OperationRun): void {
    this.closeTickets();
    const { tickets, failure } = more;
    const shapes = { inputs: inputs.map(kindOf), outputs: outputs.map(kindOf) };
    this.add({
      ph: "X",
      name: operation,
      cat: backend,
      ts: start * 1000,
      dur: milliseconds * 1000,
      args: {
        backend,
        reason,
        ...shapes,
        copies,
        ...(within && { within: within.replace(/: $/, "") }),
        ...(tickets && tickets.last > 0 && { tickets: [tickets.first, tickets.last] }),
        ...(failure !== undefined && { failure: failure instanceof Error ? failure.message : String(failure) }),
      },
    });
  }

  allocated({ byteLength, storage, usage }: Allocation): void {
    this.allocatedBytes[storage] += byteLength;
    this.add({ ph: "C", name: "allocated bytes so far", ts: now(), args: { ...this.allocatedBytes } });
    if (usage === undefined) return;
    const device = storage === "host" ? "host" : "metal";
    this.add({ ph: "C", name: `live bytes (${device})`, ts: now(), args: { live: usage.liveBytes } });
    this.add({ ph: "C", name: `peak bytes (${device})`, ts: now(), args: { peak: usage.peakBytes } });
  }

  took({ name, category, start, end, details }: Activity): void {
    const common = { cat: category, name, id: `${category} ${this.activities++}`, args: details };
    this.add({ ph: "b", ...common, ts: start * 1000 });
    this.add({ ph: "e", ...common, ts: end * 1000 });
  }

  encoded({ last }: TicketRange, completion: Completion): void {
    this.completion = completion;
    for (; this.lastTicket < last; this.lastTicket++) this.addTicket("b", this.lastTicket + 1);
    this.closeTickets();
  }

  /** Ends the spans of completed command buffers now, because the device does not report when they completed. */
  private closeTickets(): void {
    if (this.openTickets.size === 0) return;
    const completed = this.completion()?.completed ?? 0;
    for (const ticket of this.openTickets) if (ticket <= completed) this.addTicket("e", ticket);
  }

  private addTicket(ph: "b" | "e", ticket: number): void {
    if (ph === "b") this.openTickets.add(ticket);
    else this.openTickets.delete(ticket);
    this.add({ ph, cat: "command buffer", name: `command buffer ${ticket}`, id: ticket, ts: now(), args: { ticket } });
  }

  private name(name: string, value: string): void {
    this.add({ ph: "M", name, args: { name: value } });
  }

  private add(event: Readonly<Record<string, unknown>>): void {
    this.file.add(JSON.stringify({ ...event, pid: process.pid, tid: this.thread }));
  }
}

const kindOf = ({ dtype, shape }: ObservedTensor): string => `${dtype}[${shape.join(", ")}]`;

/** `trace.json`, `trace.thread-2.json`. */
function fileOf(path: string, thread: number): string {
  const file = path.replaceAll("%p", String(process.pid));
  return thread === 0 ? file : file.replace(/(\.[^./]*)?$/, (extension) => `.thread-${thread}${extension}`);
}
