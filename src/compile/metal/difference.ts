/** Compares two recordings on metal: dispatches are replayed only after two successive recordings were equal. */
import { tupleOf } from "../../core/tuples.ts";
import { liveStorages } from "../difference.ts";
import { placeIn } from "../errors.ts";
import type { Entry } from "../recording.ts";
import type { DeviceCall, DeviceRecording } from "./recording.ts";

/** Returns how two recordings differ; undefined if they differ only in numbers that each replay recomputes. */
export function deviceDifference(a: DeviceRecording, b: DeviceRecording): string | undefined {
  const [before, after] = tupleOf([a, b].map(fixedBlocks), 2);
  const live = new Set<object | null>([...liveStorages(b), ...b.contents.keys()]);
  for (const [at, call] of b.calls.entries()) {
    const was = a.calls[at];
    if (was?.name !== call.name)
      return `call ${at} is ${call.name}${placeIn(call.place)}, and was ${was?.name ?? "missing"} before`;
    const why =
      Buffer.compare(before[at], after[at]) === 0
        ? operandDifference(was, call, live)
        : "a number, a shape or an offset changes from call to call";
    if (why !== undefined) return `${why} in ${call.name}${placeIn(call.place)}`;
  }
  if (a.calls.length > b.calls.length) return `${a.calls[b.calls.length].name} is no longer called`;
  return factsOf(a) === factsOf(b) ? undefined : "the changed tensors, optimizer steps or checks differ";
}

/** Returns the blocks with zeros in place of the numbers that each replay recomputes. */
function fixedBlocks({ calls, draws, parameters }: DeviceRecording): Uint8Array[] {
  const blocks = calls.map(({ block }) => block.slice());
  for (const { places } of draws) for (const { call, at } of places) blocks[call].fill(0, at, at + 8);
  for (const { call } of parameters)
    for (const { at, length } of calls[call].inline) blocks[call].fill(0, at, at + length);
  return blocks;
}

function operandDifference(a: DeviceCall, b: DeviceCall, live: ReadonlySet<object | null>): string | undefined {
  for (const [at, entry] of b.operands.entries()) {
    const why = entryDifference(a.operands[at], entry, live);
    if (why !== undefined) return why;
  }
  return undefined;
}

function entryDifference(a: Entry, b: Entry, live: ReadonlySet<object | null>): string | undefined {
  if (a.source !== b.source || a.index !== b.index || a.id !== b.id || a.bytes !== b.bytes)
    return "an operand is in different memory in each call";
  if (b.contents && !live.has(b.storage) && (!a.contents || Buffer.compare(a.contents, b.contents) !== 0))
    return "a value that JavaScript computes changes from call to call";
  return b.source === "external" && a.storage !== b.storage
    ? "a tensor of the surrounding code was replaced"
    : undefined;
}

const factsOf = ({ changes, checks, steps, draws, parameters, scalars }: DeviceRecording): string =>
  JSON.stringify([
    scalars.map(({ step }) => step),
    changes.map(({ gradient, versions, after }) => [gradient, versions, after?.id]),
    checks.map(({ entry }) => entry.id),
    steps.map(({ slots }) => slots.length),
    draws.map(({ ahead, places }) => [`${ahead}`, places]),
    parameters.map(({ call, step }) => [call, step]),
  ]);
