/** Describes a run that trains an encoder. */
import { join } from "node:path";
import { orchardCommand } from "../../core/commands.ts";
import { formatCount, shownPath } from "../../core/format.ts";
import { counted } from "../../core/plural.ts";
import { type EncoderSession, MODEL } from "./session.ts";

export function describeEncoderRun(session: EncoderSession, folder: string): string {
  const { settings, model, adapter, records, step, backend } = session;
  const { task, batch, accumulate, steps } = settings;
  const count = (parameters: readonly { readonly size: number }[]) =>
    formatCount(parameters.reduce((total, { size }) => total + size, 0));
  const labels = task === "classify" ? `, ${counted(model.labels!.names.length, "label")}` : "";
  const passes = accumulate === 1 ? "" : `${accumulate} × `;
  const [train, heldOut] = [records.train.length, records.heldOut.length];
  return [
    `model       ${model.description.architecture}: ${count(Object.values(model.stateDict()))} parameters, ` +
      `${count(model.parameters())} trained`,
    ...(adapter
      ? [`adapter     rank ${adapter.rank} at ${counted(adapter.layers.size, "layer")}, alpha ${adapter.alpha}`]
      : []),
    `task        ${task}: ${counted(train + heldOut, "record")} (${heldOut} held out)${labels}`,
    `steps       ${step > 0 ? `from ${step} ` : ""}to ${steps}, of ${passes}${counted(batch, "record")}`,
    `backend     ${backend}`,
    `run         ${shownPath(folder)}`,
  ].join("\n");
}

/** Explains how to use the model. */
export function encoderHints({ settings }: EncoderSession, folder: string): string {
  const model = shownPath(join(folder, MODEL));
  const use =
    settings.task === "embed"
      ? `embed texts: ${orchardCommand(`embed texts.txt --model ${model} --out vectors.npy`)}`
      : `classify texts: nn.classify(model, texts), with nn.loadModel<nn.Encoder>("${model}")`;
  return `model: ${model}\n${use}`;
}
