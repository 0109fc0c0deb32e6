/** `orchard train`: a run from the command line, from its folder to its last line. */
import { join } from "node:path";
import { codepaths } from "../backend/codepaths.ts";
import { formatCodepaths } from "../backend/format_codepaths.ts";
import type { BackendName } from "../backend/names.ts";
import { getBackend, setBackend, setStrict } from "../backend/policy.ts";
import type { DataReport } from "../data/dataset.ts";
import type { Curves, Point } from "./curve.ts";
import { Dashboard } from "./dashboard/server.ts";
import { reportErrors } from "./errors.ts";
import type { EvaluationEvent, Listener, StepEvent } from "./events.ts";
import { checkpointsIn, findRun, makeRunFolder } from "./folder.ts";
import { formatBytes, formatCount } from "./format.ts";
import { onInterrupt } from "./interrupt.ts";
import { Listeners } from "./listeners/all.ts";
import { CURVE_FILES, CurveFiles } from "./listeners/curve.ts";
import { JsonLog, LOG_FILE, readLog } from "./listeners/log.ts";
import { indented, ProgressBar } from "./listeners/progress.ts";
import { type Outcome, runSession } from "./run.ts";
import { loadRun, Session } from "./session.ts";
import { checkSettings, type PresetName, presetFor, presets, type Settings } from "./settings.ts";

/** What the command line says beside {@link Settings}: where a run goes, and what is shown of it. */
export interface TrainOptions extends Partial<Settings> {
  readonly preset?: PresetName;
  readonly backend?: BackendName;
  readonly strict?: true;
  readonly out?: string;
  readonly resume?: string | true;
  readonly dashboard?: number | true;
}

/** What shells know as "ended by Ctrl-C". */
const INTERRUPTED = 130;

/** Returns the exit code: 0 finished, 130 interrupted and saved, 1 failed. */
export function runTrain(options: TrainOptions): Promise<number> {
  return reportErrors(async () => {
    if (options.backend) setBackend(options.backend);
    if (options.strict) setStrict(true);
    const page = openDashboard(options); // first: where its port is taken no folder is made
    try {
      return await train(options, page);
    } finally {
      await page?.close();
    }
  });
}

async function train(options: TrainOptions, page: Dashboard | undefined): Promise<number> {
  const { session, folder } = await open(options);
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
    console.log(summarize(outcome, folder, samples.at(-1)));
    if (outcome.unsaved) return 1;
    return outcome.reason === "finished" ? 0 : INTERRUPTED;
  } finally {
    await listeners.close();
  }
}

async function open(options: TrainOptions): Promise<{ session: Session; folder: string }> {
  if (options.resume === undefined) {
    const settings = checkSettings(settingsOf(options, presets[options.preset ?? presetFor(getBackend())]));
    const session = await Session.start(settings);
    return { session, folder: makeRunFolder(options.out) }; // after what may be wrong with the text
  }
  const folder = findRun("train", options.resume === true ? options.out : options.resume);
  const checkpoint = await loadRun(checkpointsIn(folder));
  const settings = checkSettings(settingsOf(options, checkpoint.extra.settings));
  return { session: await Session.resume(checkpoint, settings), folder };
}

/** Settings that are named on the command line, and for the others those of the preset or the checkpoint. */
function settingsOf(options: TrainOptions, defaults: Settings): Settings {
  const named = Object.entries(options).filter(([name, value]) => name in defaults && value !== undefined);
  return { ...defaults, ...Object.fromEntries(named) };
}

/** What the log says of earlier sessions, up to the step from which this one goes on. Of a step that was taken again the last time counts. */
function curvesIn(folder: string, step: number): Curves {
  const events = readLog(folder).filter((event) => event.step <= step);
  const pointsOf = (kind: "step" | "evaluation"): Point[] => {
    const points = events.filter((event): event is StepEvent | EvaluationEvent => event.kind === kind);
    return [...new Map(points.map((point) => [point.step, point])).values()];
  };
  return { training: pointsOf("step"), heldOut: pointsOf("evaluation") };
}

const openDashboard = ({ dashboard: port }: TrainOptions): Dashboard | undefined =>
  port === undefined ? undefined : new Dashboard(port === true ? 0 : port);

const samplesInto = (texts: string[]): Listener => ({
  on: (event) => void (event.kind === "sample" && texts.push(event.prompt + event.text)),
});

function describe({ settings, model, text, step, backend }: Session, folder: string): string {
  const { architecture, layers, heads, width, context, dtype, batch, accumulate, steps } = settings;
  const parameters = formatCount(model.parameters().reduce((total, { size }) => total + size, 0));
  const passes = accumulate === 1 ? "" : `${accumulate} × `;
  return [
    `model       ${architecture}, ${layers} layers, ${heads} heads, width ${width}, context ${context}: ${parameters} parameters, ${dtype}`,
    `text        ${describeText(text.report)}`,
    ...text.report.warnings.map((warning) => `            ${warning}`),
    `steps       ${step > 0 ? `from ${step} ` : ""}to ${steps}, of ${passes}${batch} windows`,
    `backend     ${backend}`,
    `run         ${folder}`,
  ].join("\n");
}

function describeText({ documents, bytes, tokens, heldOutTokens, skipped, source }: DataReport): string {
  const left = Object.entries(skipped)
    .filter(([, files]) => files.length > 0)
    .map(([reason, files]) => `${files.length} ${reason}`);
  const leftOut = left.length > 0 ? `; left out: ${left.join(", ")}` : "";
  const held = formatCount(heldOutTokens);
  return `${documents} files, ${formatBytes(bytes)}, ${formatCount(tokens)} tokens (${held} held out) from ${source.join(", ")}${leftOut}`;
}

function summarize({ reason, step, loss, heldOutLoss, checkpoint, unsaved }: Outcome, folder: string, sample?: string) {
  const files = [CURVE_FILES.svg, CURVE_FILES.png, LOG_FILE].map((name) => join(folder, name)).join(", ");
  const goOn = `bun run train --resume ${folder}`;
  const saved = unsaved ? `not saved; the last good checkpoint: ${checkpoint ?? "none"}` : `saved: ${checkpoint}`;
  return [
    `\n${reason} at step ${step}: loss ${loss.toFixed(4)}, held out ${heldOutLoss.toFixed(4)}`,
    saved,
    `curve and log: ${files}`,
    reason === "finished" ? `more text: bun run generate ${folder}` : `to go on: ${goOn}`,
    ...(sample === undefined ? [] : [`\na sample:\n${indented(sample)}`]),
    `\nwhat computed:\n${formatCodepaths(codepaths())}`,
  ].join("\n");
}
