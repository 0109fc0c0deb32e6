import { getBackend } from "../backend/policy.ts";
import { ArgumentError } from "../core/errors.ts";
import { anObject, aPath, choice, flag, instanceOf, listOf, someNumber, text } from "../core/kinds.ts";
import { type Kind, named, type Parameter, unlisted } from "../core/parameters.ts";
import type { Listener } from "./events.ts";
import { checkpointsIn, findRun, lockRun, makeRunFolder, type RunFolder } from "./folder.ts";
import type { TrainedRun, TrainOptions } from "./index.ts";
import { Listeners } from "./listeners/all.ts";
import { JsonLog } from "./listeners/log.ts";
import { runSession } from "./run.ts";
import { loadRun, Session } from "./session.ts";
import {
  architectures,
  checkSettings,
  type PresetName,
  presetFor,
  presets,
  type Settings,
  settingsOf,
  tokenizers,
  trainingDTypes,
} from "./settings.ts";
import { Team } from "./team.ts";
import { writeTokenizer } from "./text.ts";

/** Kinds of the settings that are not numbers. */
const kinds: Readonly<Partial<Record<keyof Settings, Kind<unknown>>>> = {
  architecture: choice(...architectures),
  dtype: choice(...trainingDTypes),
  tokenizer: choice(...tokenizers),
  data: listOf(text, "a list of files, folders and globs"),
  prompt: text,
};
const settings = Object.fromEntries(
  Object.keys(presets.cpu).map((name) => [name, named(kinds[name as keyof Settings] ?? someNumber)]),
) as Record<keyof Settings, Parameter<unknown>>;

const trainParameters = unlisted("train", {
  ...settings,
  preset: named(choice(...(Object.keys(presets) as PresetName[]))),
  out: named(aPath),
  resume: named(aPath),
  compile: named(flag),
  listener: named(anObject<Listener>("a listener: an object with a method on")),
  signal: named(instanceOf(AbortSignal, "an AbortSignal")),
});

/** Trains with {@link TrainOptions}. */
export async function start(values: readonly unknown[]): Promise<TrainedRun> {
  const { preset, out, resume, compile, listener, signal, ...given } = trainParameters(values);
  if (resume !== undefined && (out ?? preset) !== undefined)
    throw new ArgumentError("train", "invalidSetting", "expected no out and no preset beside resume, got both");
  const { session, folder: held } = await open(given as Partial<Settings>, { preset, out, resume, compile });
  using folder = held;
  const { model, tokenizer } = session;
  await writeTokenizer(tokenizer, folder.path);
  const listeners = new Listeners([new JsonLog(folder.path), ...(listener ? [listener] : [])]);
  try {
    const outcome = await runSession(session, checkpointsIn(folder.path), listeners, signal);
    return { ...outcome, folder: folder.path, model, tokenizer };
  } finally {
    await listeners.close();
  }
}

type Opening = Pick<TrainOptions, "preset" | "out" | "resume" | "compile">;

async function open(
  given: Partial<Settings>,
  { preset, out, resume, compile }: Opening,
): Promise<{ session: Session; folder: RunFolder }> {
  if (resume === undefined) {
    const all = checkSettings(settingsOf(given, presets[preset ?? presetFor(getBackend())]));
    const session = await Session.start(all, Team.alone, { compile });
    return { session, folder: makeRunFolder(out) }; // only after the text is validated
  }
  const folder = lockRun(findRun("train", resume));
  try {
    const checkpoint = await loadRun(checkpointsIn(folder.path));
    const all = checkSettings(settingsOf(given, checkpoint.extra.settings));
    return { session: await Session.resume(checkpoint, all, Team.alone, { compile }), folder };
  } catch (error) {
    folder[Symbol.dispose]();
    throw error;
  }
}
