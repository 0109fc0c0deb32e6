import { MultiBar, type SingleBar } from "cli-progress";
import { lineColumns } from "../../core/fitted_line.ts";
import { formatBytes, formatCount, formatDuration, shownPath } from "../../core/format.ts";
import { type Listener, type RunEvent, type StartEvent, type StepEvent, shownLoss } from "../events.ts";
import { type Figures, progressLine } from "../progress_line.ts";

/** Without a terminal, a line of progress is printed at this interval, in milliseconds. */
const LINE_INTERVAL = 5_000;

/**
 * Shows a progress bar on stderr with the loss, the speed, the time left, the memory and the backend, as far as they
 * fit the terminal. Notes, samples and checkpoints are printed above it, except the sample of the last step, which is
 * part of the summary.
 */
export class ProgressBar implements Listener {
  private readonly bars = new MultiBar({
    format: (_, { value, total }, figures: Figures) => progressLine(lineColumns(), value, total, figures),
    noTTYOutput: true,
    notTTYSchedule: LINE_INTERVAL,
    hideCursor: true,
    gracefulExit: false, // the run handles signals itself
    linewrap: true,
  });
  private bar: SingleBar | null = null;
  private shown: Figures = { loss: "loss …", heldOut: "…", speed: "…", left: "…", memory: "…", backend: "" };

  on(event: RunEvent): void {
    if (event.kind === "start") this.start(event);
    else if (event.kind === "step") this.show(event.step, ofStep(event));
    else if (event.kind === "evaluation") this.show(event.step, { heldOut: shownLoss(event).toFixed(3) });
    else if (event.kind === "end") this.close();
    else if (event.kind === "sample" && event.step === this.bar?.getTotal()) return;
    else this.bars.log(`${lineOf(event)}\n`);
  }

  close(): void {
    if (!this.bar) return;
    this.bars.update(); // prints pending log lines
    this.bars.stop(); // its timer would keep the process alive
    this.bar = null;
  }

  private start({ steps, step, backend }: StartEvent): void {
    this.shown = { ...this.shown, backend };
    this.bar = this.bars.create(steps, step, this.shown);
  }

  private show(step: number, more: Partial<Figures>): void {
    this.shown = { ...this.shown, ...more };
    this.bar?.update(step, this.shown);
  }
}

const ofStep = (event: StepEvent): Partial<Figures> => ({
  loss: event.bitsPerByte === undefined ? `loss ${event.loss.toFixed(3)}` : `${event.bitsPerByte.toFixed(3)} bits/byte`,
  speed: formatCount(event.tokensPerSecond),
  left: formatDuration(event.secondsLeft),
  memory: formatBytes(event.liveBytes),
});

function lineOf(event: Extract<RunEvent, { kind: "sample" | "checkpoint" | "note" }>): string {
  if (event.kind === "sample") return `step ${event.step}, sample:\n${indented(event.prompt + event.text)}`;
  if (event.kind === "checkpoint") return `step ${event.step}, saved: ${shownPath(event.file)}`;
  return `step ${event.step}: ${event.text}`;
}

export const indented = (text: string): string => text.replaceAll(/^/gm, "  │ ");
