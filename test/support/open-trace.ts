/**
 * Opens a trace with the engine behind the Performance panel of Chrome's developer tools, in a separate process,
 * because that engine requires a DOM rectangle, and prints the result: {@link OpenedTrace}.
 */
import { TraceModel } from "@paulirish/trace_engine";

/** A track of the panel: a thread with the operations on it. */
interface Track {
  readonly name: string;
  readonly spans: readonly string[];
}

/** The engine's view of a trace. */
export interface OpenedTrace {
  readonly processes: readonly string[];
  readonly tracks: readonly Track[];
}

Object.assign(globalThis, { DOMRect: class {} });
const model = TraceModel.Model.createWithAllHandlers();
await model.parse(await Bun.file(process.argv[2]).json());
const { Meta, Renderer } = model.parsedTrace()!.data;
const tracks = [...Renderer.processes.values()].flatMap(({ threads }) => [...threads.values()]);
console.log(
  JSON.stringify({
    processes: [...Meta.processNames.values()].map(({ args }) => args.name ?? ""),
    tracks: tracks.map(({ name, entries }) => ({ name: name ?? "", spans: entries.map((entry) => entry.name) })),
  } satisfies OpenedTrace),
);
