/** `orchard train`: runs training from the command line. */

import { codepaths } from "../backend/codepaths.ts";
import { formatCodepaths } from "../backend/format_codepaths.ts";
import type { BackendName } from "../backend/names.ts";
import { getBackend, setBackend, setStrict } from "../backend/policy.ts";
import { orchardCommand } from "../core/commands.ts";
import { ArgumentError } from "../core/errors.ts";
import { formatBytes, formatCount, shownPath } from "../core/format.ts";
import { counted } from "../core/plural.ts";
import { reportErrors } from "../core/report_errors.ts";
import type { DataReport } from "../data/dataset.ts";
import { loadCheckpoint } from "../io/checkpoint/load.ts";
import { describeComputed } from "./computed.ts";
import { BITS_PER_BYTE, type Curves, type Point } from "./curve.ts";
import { Dashboard } from "./dashboard/server.ts";
import { describeEncoderRun, encoderHints } from "./encoders/describe.ts";
import { type EncoderCheckpoint, EncoderSession } from "./encoders/session.ts";
import { type EncoderFlags, encoderSettings } from "./encoders/settings.ts";
import type { EvaluationEvent, Listener, Outcome, StepEvent } from "./events.ts";
import { checkpointsIn, findRun, lockRun, makeRunFolder, type RunFolder } from "./folder.ts";
import { onInterrupt } from "./interrupt.ts";
import { Listeners } from "./listeners/all.ts";
import { CURVE_FILES, CurveFiles, pointOf } from "./listeners/curve.ts";
import { JsonLog, LOG_FILE, readLog } from "./listeners/log.ts";
import { indented, ProgressBar } from "./listeners/progress.ts";
import { TensorBoardLog } from "./listeners/tensorboard.ts";
import { runSession } from "./run.ts";
import { loadRun, Session, type SessionOptions } from "./session.ts";
import { checkSettings, type PresetName, presetFor, presets, type Settings, settingsOf } from "./settings.ts";
import { Team } from "./team.ts";
import { terminalCurve } from "./terminal_curve.ts";
import { writeTokenizer } from "./text.ts";
import { describeTuning, tuningHints } from "./tuning/describe.ts";
import { type TuningCheckpoint, TuningSession } from "./tuning/session.ts";
import { type TuningFlags, tuningSettings } from "./tuning/settings.ts";

/** The command-line options: {@link Settings}, and those that do not change the results. */
export interface RunFlags extends Partial<Omit<Settings, "dtype">>, TuningFlags, Pick<EncoderFlags, "task" | "scale"> {
  readonly preset?: PresetName;
  readonly backend?: BackendName;
  readonly strict?: true;
  readonly out?: string;
  readonly resume?: string | true;
  readonly dashboard?: number | true;
  /** Writes a TensorBoard event file to the run's folder. */
  readonly tensorboard?: true;
  /** Lists which backend ran each operation. Then steps are not compiled, since replays are not listed. */
  readonly verbose?: true;
  /** Whether to compile training steps. Default: on cpu. */
  readonly compile?: boolean;
}

/**
 * Trains a model. Returns the exit code: 0 if finished; 130 (Ctrl-C), 143 (SIGTERM) or 129 (SIGHUP) if interrupted and
 * saved; 1 if failed.
 */
export function runTrain(flags: RunFlags): Promise<number> {
  return reportErrors(async () => {
    if (flags.backend) setBackend(flags.backend);
    if (flags.strict) setStrict(true);
    const team = await Team.gather();
    const page = team.isFirst ? openDashboard(flags) : undefined; // opened first, because its port may be in use
    try {
      const code = team.isFirst ? await train(flags, team, page) : await trainAlong(flags, team);
      await team.part();
      return code;
    } finally {
      await page?.close();
    }
  });
}

/** Trains on a rank that prints and writes nothing; the first rank does that. */
async function trainAlong(flags: RunFlags, team: Team): Promise<number> {
  const { session, folder } = await open(flags, team);
  using interrupt = onInterrupt();
  const outcome = await runSession(session, checkpointsIn(folder.path), { on: () => undefined }, interrupt.signal);
  return outcome.reason === "finished" ? 0 : interrupt.exitCode;
}

async function train(flags: RunFlags, team: Team, page: Dashboard | undefined): Promise<number> {
  const { session, folder: held } = await open(flags, team);
  using _ = held;
  const folder = held.path;
  if (session instanceof Session) await writeTokenizer(session.tokenizer, folder);
  console.log(describeAny(session, folder));
  if (page) console.log(`dashboard   ${page.url}`);
  const samples: string[] = [];
  const shown = [new ProgressBar(), ...(page ? [page] : []), samplesInto(samples)];
  const curve = new CurveFiles(folder, curvesIn(folder, session.step), unitOf(session));
  const logs = [new JsonLog(folder), ...(flags.tensorboard ? [new TensorBoardLog(folder)] : [])];
  const listeners = new Listeners([...logs, curve, ...shown]);
  using interrupt = onInterrupt();
  try {
    const outcome = await runSession(session, checkpointsIn(folder), listeners, interrupt.signal);
    await listeners.close();
    const sample = outcome.reason === "finished" ? samples.at(-1) : undefined;
    const picture = terminalCurve(curve.curves, pageWidth(), CURVE_ROWS);
    console.log(summarize({ outcome, session, folder, picture, sample, isVerbose: flags.verbose === true }));
    if (outcome.unsaved) return 1;
    return outcome.reason === "finished" ? 0 : interrupt.exitCode;
  } finally {
    await listeners.close();
  }
}

type AnySession = Session | TuningSession | EncoderSession;

function describeAny(session: AnySession, folder: string): string {
  if (session instanceof EncoderSession) return describeEncoderRun(session, folder);
  return session instanceof Session ? describe(session, folder) : describeTuning(session, folder);
}

/** The unit of the shown losses. */
const unitOf = (session: AnySession): string => (session instanceof EncoderSession ? "nats" : BITS_PER_BYTE);

async function open(flags: RunFlags, team: Team): Promise<{ session: AnySession; folder: RunFolder }> {
  if (flags.resume === undefined) {
    const session = await start(flags, team);
    return { session, folder: folderOf(team, () => makeRunFolder(flags.out)) }; // only after the text is validated
  }
  const named = flags.resume === true ? flags.out : flags.resume;
  const folder = folderOf(team, () => lockRun(findRun("train", named)));
  try {
    return { session: await resume(flags, folder.path, team), folder };
  } catch (error) {
    folder[Symbol.dispose]();
    throw error;
  }
}

async function start(flags: RunFlags, team: Team): Promise<AnySession> {
  if (flags.task !== undefined) {
    refuseCompiled(flags);
    return await EncoderSession.start(encoderSettings(flags), team);
  }
  if (flags.scale !== undefined) throw new ArgumentError("train", "invalidSetting", "--scale requires --task embed");
  if (flags.model !== undefined || flags.lora !== undefined) {
    if (flags.model === undefined) throw new ArgumentError("train", "invalidSetting", "--lora requires --model");
    refuseCompiled(flags);
    return await TuningSession.start(tuningSettings(flags), team);
  }
  const foreign = (["loraAlpha", "loraDropout", "loraTargets", "quantize"] as const).find((name) => name in flags);
  if (foreign !== undefined) throw new ArgumentError("train", "invalidSetting", `${foreign} requires --model`);
  const settings = settingsOf(flags as Partial<Settings>, presets[flags.preset ?? presetFor(getBackend())]);
  return await Session.start(checkSettings(settings), team, optionsOf(flags));
}

/** Creates or opens the run's folder on the first rank, and sends its path to the others. */
function folderOf(team: Team, make: () => RunFolder): RunFolder {
  if (!team.isFirst) return { path: team.told(""), [Symbol.dispose]: () => undefined };
  const folder = make();
  team.told(folder.path);
  return folder;
}

async function resume(flags: RunFlags, folder: string, team: Team): Promise<AnySession> {
  const encoder: EncoderCheckpoint = await loadCheckpoint(checkpointsIn(folder));
  if (encoder.extra?.encoder) {
    refuseCompiled(flags);
    return await EncoderSession.resume(encoder, encoderSettings(flags, encoder.extra.encoder), team);
  }
  const found = encoder as unknown as TuningCheckpoint;
  if (found.extra?.tuning) {
    refuseCompiled(flags);
    await team.together(); // all ranks load this checkpoint before the first rank writes another one
    return await TuningSession.resume(found, tuningSettings(flags, found.extra.tuning), team);
  }
  const checkpoint = await loadRun(checkpointsIn(folder));
  await team.together();
  return Session.resume(
    checkpoint,
    checkSettings(settingsOf(flags as Partial<Settings>, checkpoint.extra.settings)),
    team,
    optionsOf(flags),
  );
}

/** Batches of chats and of texts differ in length, so each would be recorded again. */
function refuseCompiled({ compile }: RunFlags): void {
  if (compile) throw new ArgumentError("train", "invalidSetting", "--compile does not support --model; leave it out");
}

const optionsOf = ({ compile, verbose }: RunFlags): SessionOptions => ({ compile: verbose ? false : compile });

/**
 * Reads the curves of this run from its log, up to the step from which it resumes. If a step was logged twice, the last
 * entry is used.
 */
function curvesIn(folder: string, step: number): Curves {
  const events = readLog(folder).filter((event) => event.step <= step);
  const pointsOf = (kind: "step" | "evaluation"): Point[] => {
    const points = events.filter((event): event is StepEvent | EvaluationEvent => event.kind === kind);
    return [...new Map(points.map((point) => [point.step, pointOf(point)])).values()];
  };
  return { training: pointsOf("step"), heldOut: pointsOf("evaluation") };
}

const openDashboard = ({ dashboard: port }: RunFlags): Dashboard | undefined =>
  port === undefined ? undefined : new Dashboard(port === true ? 0 : port);

const samplesInto = (texts: string[]): Listener => ({
  on: (event) => void (event.kind === "sample" && texts.push(event.prompt + event.text)),
});

function describe(session: Session, folder: string): string {
  const { settings, model, text, step, backend } = session;
  const { architecture, layers, heads, width, context, dtype, batch, accumulate, steps } = settings;
  const parameters = formatCount(model.parameters().reduce((total, { size }) => total + size, 0));
  const passes = accumulate === 1 ? "" : `${accumulate} × `;
  const shape = `${counted(layers, "layer")}, ${counted(heads, "head")}, width ${width}, context ${context}`;
  return [
    `model       ${architecture}, ${shape}: ${parameters} parameters, ${dtype}`,
    `text        ${describeText(text.report)}`,
    `tokens      ${describeTokens(session)}`,
    ...text.report.warnings.map((warning) => `            ${warning}`),
    `steps       ${step > 0 ? `from ${step} ` : ""}to ${steps}, of ${passes}${counted(batch, "window")}`,
    `backend     ${backend}`,
    ...(session.team.size > 1 ? [`ranks       ${session.team}`] : []),
    `run         ${shownPath(folder)}`,
  ].join("\n");
}

/** Describes the vocabulary size and the mean text per token. */
function describeTokens({ settings, tokenizer, text }: Session): string {
  const { bytes, tokens } = text.report;
  const kinds = { bytes: "bytes", gpt2: "GPT-2's", bpe: "trained on the text" } as const;
  const count = tokenizer.vocabularySize.toLocaleString("en");
  return `${count}, ${kinds[settings.tokenizer]}; ${(bytes / tokens).toFixed(2)} bytes each`;
}

function describeText({ documents, bytes, tokens, heldOutTokens, skipped, source }: DataReport): string {
  const reasons = Object.entries(skipped)
    .filter(([, files]) => files.length > 0)
    .map(([reason, files]) => `${files.length} ${reason}`);
  const ending = reasons.length > 0 ? `\n            skipped: ${reasons.join(", ")}` : "";
  const counts = `${formatCount(tokens)} tokens (${formatCount(heldOutTokens)} held out)`;
  const places = source.map(shownPath).join(", ");
  return `${counted(documents, "file")}, ${formatBytes(bytes)}, ${counts} from ${places}${ending}`;
}

interface Summary {
  readonly outcome: Outcome;
  readonly session: AnySession;
  readonly folder: string;
  /** The curve for the terminal. */
  readonly picture: string;
  readonly sample: string | undefined;
  readonly isVerbose: boolean;
}

function summarize({ outcome, session, folder, picture, sample, isVerbose }: Summary): string {
  const { reason, step, checkpoint, unsaved } = outcome;
  return [
    ...(picture === "" ? [] : [`\nloss, in ${unitOf(session)} (o: held out):\n${picture}`]),
    ...(sample === undefined ? [] : [`\nsample:\n${indented(sample)}`]),
    `\n${describeComputed(session.backend, codepaths())}`,
    ...(isVerbose ? [`\nbackends:\n${formatCodepaths(codepaths())}`] : []),
    `\n${[`${reason} at step ${step}`, ...describeLosses(outcome, session)].join(": ")}`,
    unsaved ? `not saved; the last checkpoint: ${checkpoint ?? "none"}` : `saved: ${shownPath(checkpoint ?? "")}`,
    `curve and log: ${shownPath(folder)}/{${CURVE_FILES.svg},${CURVE_FILES.png},${LOG_FILE}}`,
    reason === "finished"
      ? hintsOf(session, folder)
      : `resume: ${orchardCommand(`train --resume ${shownPath(folder)}`)}`,
  ].join("\n");
}

/** Explains what to do with the result. */
function hintsOf(session: AnySession, folder: string): string {
  if (session instanceof EncoderSession) return encoderHints(session, folder);
  if (session instanceof TuningSession) return tuningHints(session.settings.model, folder);
  return `generate text: ${orchardCommand(`generate ${shownPath(folder)}`)}`;
}

/** Describes the available losses: none before the first step, and no held-out loss before the first evaluation. */
function describeLosses({ loss, heldOutLoss, heldOutBits }: Outcome, session: AnySession): string[] {
  const unit = session instanceof EncoderSession ? "nats" : "nats per token";
  const known = [
    ...(Number.isNaN(loss) ? [] : [`loss ${loss.toFixed(4)} ${unit}`]),
    ...(Number.isNaN(heldOutLoss) ? [] : [`held out ${heldOutLoss.toFixed(4)}`]),
    ...(Number.isNaN(heldOutBits) ? [] : [`${heldOutBits.toFixed(3)} bits per byte`]),
  ];
  return known.length > 0 ? [known.join(", ")] : [];
}

const CURVE_ROWS = 10;

/** The width of the summary in columns. */
const pageWidth = (): number => Math.min(80, process.stdout.columns || 80) - 1;
