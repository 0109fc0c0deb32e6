/** Describes a run that adapts a model. */
import { join } from "node:path";
import { orchardCommand } from "../../core/commands.ts";
import { formatBytes, formatCount, shownPath } from "../../core/format.ts";
import { counted } from "../../core/plural.ts";
import type { ExamplesReport } from "./dataset.ts";
import { ADAPTER, type TuningSession } from "./session.ts";

export function describeTuning(session: TuningSession, folder: string): string {
  const { settings, model, loaded, adapter, data, step, backend, team } = session;
  const { quantize, batch, accumulate, steps, lora, packing, checkpointActivations } = settings;
  const { architecture } = model.description;
  const passes = accumulate === 1 ? "" : `${accumulate} × `;
  const parameters = formatCount(adapter.parameters().reduce((total, { size }) => total + size, 0));
  const layers = counted(adapter.layers.size, "layer");
  const { mappedBytes, allocatedBytes } = loaded.report;
  const bytes = formatBytes(mappedBytes + allocatedBytes);
  const kept = [...(packing ? ["packed"] : []), ...(checkpointActivations ? ["blocks recomputed"] : [])];
  const rows = [`${passes}${counted(batch, "row")}`, ...kept];
  return [
    `model       ${architecture}${quantize && `, ${quantize}`}: ${bytes} of weights`,
    `adapter     rank ${lora} at ${layers}: ${parameters} parameters, alpha ${adapter.alpha}`,
    `chats       ${describeExamples(data.report)}`,
    `steps       ${step > 0 ? `from ${step} ` : ""}to ${steps}, of ${rows.join(", ")}`,
    `backend     ${backend}`,
    ...(team.size > 1 ? [`ranks       ${team}`] : []),
    `run         ${shownPath(folder)}`,
  ].join("\n");
}

function describeExamples({ examples, heldOut, tokens, targets, truncated, dropped }: ExamplesReport): string {
  const ending = [
    ...(truncated > 0 ? [`${truncated} cut to the context`] : []),
    ...(dropped > 0 ? [`${dropped} without targets dropped`] : []),
  ];
  const counts = `${formatCount(tokens)} tokens, ${formatCount(targets)} of them targets`;
  return [`${counted(examples, "example")} (${heldOut} held out), ${counts}`, ...ending].join("\n            ");
}

/** Suggests how to use the adapter. */
export function tuningHints(model: string, folder: string): string {
  const adapter = shownPath(join(folder, ADAPTER));
  const merged = model.endsWith(".gguf") ? "FILE.gguf" : "FOLDER";
  return [
    `adapter: ${adapter}`,
    `chat with it: ${orchardCommand(`chat ${shownPath(model)} --adapter ${adapter}`)}`,
    `merge it: ${orchardCommand(`merge ${shownPath(model)} ${adapter} --out ${merged}`)}`,
  ].join("\n");
}
