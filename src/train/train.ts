/** `orchard train`: a run from the command line. */

import { join } from "node:path";
import { codepaths } from "../backend/codepaths.ts";
import { formatCodepaths } from "../backend/format_codepaths.ts";
import type { BackendName } from "../backend/names.ts";
import { getBackend, setBackend, setStrict } from "../backend/policy.ts";
import { orchardCommand } from "../core/commands.ts";
import { counted } from "../core/plural.ts";
import type { DataReport } from "../data/dataset.ts";
import type { Curves, Point } from "./curve.ts";
import { Dashboard } from "./dashboard/server.ts";
import { reportErrors } from "./errors.ts";
import type { EvaluationEvent, Listener, StepEvent } from "./events.ts";
import { checkpointsIn, findRun, lockRun, makeRunFolder, type RunFolder } from "./folder.ts";
import { formatBytes, formatCount } from "./format.ts";
import { onInterrupt } from "./interrupt.ts";
import { Listeners } from "./listeners/all.ts";
import { CURVE_FILES, CurveFiles } from "./listeners/curve.ts";
import { JsonLog, LOG_FILE, readLog } from "./listeners/log.ts";
import { indented, ProgressBar } from "./listeners/progress.ts";
import { type Outcome, runSession } from "./run.ts";
import { loadRun, Session } from "./session.ts";
import { checkSettings, type PresetName, presetFor, presets, type Settings, settingsOf } from "./settings.ts";

/** The flags of the command line: {@link Settings}, and those that do not change the results. */
export interface RunFlags extends Partial<Settings> {
  readonly preset?: PresetName;
  readonly backend?: BackendName;
  readonly strict?: true;
  readonly out?: string;
  readonly resume?: string | true;
  readonly dashboard?: number | true;
}

/**
 * Returns the exit code: 0 finished; interrupted and saved 130 by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP; 1 failed.
 */
export function runTrain(flags: RunFlags): Promise<number> {
  return reportErrors(async () => {
    if (flags.backend) setBackend(flags.backend);
    if (flags.strict) setStrict(true);
    const page = openDashboard(flags); // before the run's folder is created, in case its port is in use
    try {
      return await train(flags, page);
    } finally {
      await page?.close();
    }
  });
}

async function train(flags: RunFlags, page: Dashboard | undefined): Promise<number> {
  const { session, folder: held } = await open(flags);
  using _ = held;
  const folder = held.path;
  console.log(describe(session, folder));
  if (page) console.log(`dashboard   ${page.url}`);
  const samples: string[] = [];
  const shown = [new ProgressBar(), ...(page ? [page] : []), samplesInto(samples)];
  const listeners = new Listeners([
    new JsonLog(folder),
    new CurveFiles(folder, curvesIn(folder, session.step)),
    ...shown,
  ]);
  using interrupt = onInterrupt();
  try {
    const outcome = await runSession(session, checkpointsIn(folder), listeners, interrupt.signal);
    await listeners.close();
    console.log(summarize(outcome, folder, outcome.reason === "finished" ? samples.at(-1) : undefined));
    if (outcome.unsaved) return 1;
    return outcome.reason === "finished" ? 0 : interrupt.exitCode;
  } finally {
    await listeners.close();
  }
}

async function open(flags: RunFlags): Promise<{ session: Session; folder: RunFolder }> {
  if (flags.resume === undefined) {
    const settings = checkSettings(settingsOf(flags, presets[flags.preset ?? presetFor(getBackend())]));
    const session = await Session.start(settings);
    return { session, folder: makeRunFolder(flags.out) }; // after the text was found to be valid
  }
  const folder = lockRun(findRun("train", flags.resume === true ? flags.out : flags.resume));
  try {
    return { session: await resume(flags, folder.path), folder };
  } catch (error) {
    folder[Symbol.dispose]();
    throw error;
  }
}

async function resume(flags: RunFlags, folder: string): Promise<Session> {
  const checkpoint = await loadRun(checkpointsIn(folder));
  return Session.resume(checkpoint, checkSettings(settingsOf(flags, checkpoint.extra.settings)));
}

/**
 * The curves of earlier sessions from the log, up to the step that this one starts from. The last entry of a step
 * counts.
 */
function curvesIn(folder: string, step: number): Curves {
  const events = readLog(folder).filter((event) => event.step <= step);
  const pointsOf = (kind: "step" | "evaluation"): Point[] => {
    const points = events.filter((event): event is StepEvent | EvaluationEvent => event.kind === kind);
    return [...new Map(points.map((point) => [point.step, point])).values()];
  };
  return { training: pointsOf("step"), heldOut: pointsOf("evaluation") };
}

const openDashboard = ({ dashboard: port }: RunFlags): Dashboard | undefined =>
  port === undefined ? undefined : new Dashboard(port === true ? 0 : port);

const samplesInto = (texts: string[]): Listener => ({
  on: (event) => void (event.kind === "sample" && texts.push(event.prompt + event.text)),
});

function describe({ settings, model, text, step, backend }: Session, folder: string): string {
  const { architecture, layers, heads, width, context, dtype, batch, accumulate, steps } = settings;
  const parameters = formatCount(model.parameters().reduce((total, { size }) => total + size, 0));
  const passes = accumulate === 1 ? "" : `${accumulate} × `;
  const shape = `${counted(layers, "layer")}, ${counted(heads, "head")}, width ${width}, context ${context}`;
  return [
    `model       ${architecture}, ${shape}: ${parameters} parameters, ${dtype}`,
    `text        ${describeText(text.report)}`,
    ...text.report.warnings.map((warning) => `            ${warning}`),
    `steps       ${step > 0 ? `from ${step} ` : ""}to ${steps}, of ${passes}${counted(batch, "window")}`,
    `backend     ${backend}`,
    `run         ${folder}`,
  ].join("\n");
}

function describeText({ documents, bytes, tokens, heldOutTokens, skipped, source }: DataReport): string {
  const reasons = Object.entries(skipped)
    .filter(([, files]) => files.length > 0)
    .map(([reason, files]) => `${files.length} ${reason}`);
  const ending = reasons.length > 0 ? `; skipped: ${reasons.join(", ")}` : "";
  const counts = `${formatCount(tokens)} tokens (${formatCount(heldOutTokens)} held out)`;
  return `${counted(documents, "file")}, ${formatBytes(bytes)}, ${counts} from ${source.join(", ")}${ending}`;
}

function summarize({ reason, step, loss, heldOutLoss, checkpoint, unsaved }: Outcome, folder: string, sample?: string) {
  const files = [CURVE_FILES.svg, CURVE_FILES.png, LOG_FILE].map((name) => join(folder, name)).join(", ");
  const saved = unsaved ? `not saved; the last checkpoint: ${checkpoint ?? "none"}` : `saved: ${checkpoint}`;
  return [
    `\n${[`${reason} at step ${step}`, ...describeLosses(loss, heldOutLoss)].join(": ")}`,
    saved,
    `curve and log: ${files}`,
    reason === "finished"
      ? `generate text: ${orchardCommand(`generate ${folder}`)}`
      : `resume: ${orchardCommand(`train --resume ${folder}`)}`,
    ...(sample === undefined ? [] : [`\nsample:\n${indented(sample)}`]),
    `\nbackends:\n${formatCodepaths(codepaths())}`,
  ].join("\n");
}

/** The losses that there are: none where no step was taken, and no held-out loss before the first evaluation. */
function describeLosses(loss: number, heldOutLoss: number): string[] {
  const known = [
    ...(Number.isNaN(loss) ? [] : [`loss ${loss.toFixed(4)}`]),
    ...(Number.isNaN(heldOutLoss) ? [] : [`held out ${heldOutLoss.toFixed(4)}`]),
  ];
  return known.length > 0 ? [known.join(", ")] : [];
}
