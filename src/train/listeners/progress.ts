import { MultiBar, type SingleBar } from "cli-progress";
import type { Listener, RunEvent, StartEvent, StepEvent } from "../events.ts";
import { formatBytes, formatCount, formatDuration } from "../format.ts";

const FORMAT =
  "{bar} {value}/{total} │ loss {loss} │ held out {heldOut} │ {speed} tokens/s │ {left} left │ {memory} │ {backend}";
/** Without a terminal, a line of progress is printed at this interval, in milliseconds. */
const LINE_INTERVAL = 5_000;

interface Shown {
  readonly loss: string;
  readonly heldOut: string;
  readonly speed: string;
  readonly left: string;
  readonly memory: string;
  readonly backend: string;
}

/**
 * Shows a progress bar on stderr with the loss, the speed, the time left, the memory and the backend. Notes, samples
 * and checkpoints are printed above it.
 */
export class ProgressBar implements Listener {
  private readonly bars = new MultiBar({
    format: FORMAT,
    barsize: 20,
    noTTYOutput: true,
    notTTYSchedule: LINE_INTERVAL,
    hideCursor: true,
    gracefulExit: false, // the run handles signals itself
    linewrap: true,
  });
  private bar: SingleBar | null = null;
  private shown: Shown = { loss: "…", heldOut: "…", speed: "…", left: "…", memory: "…", backend: "" };

  on(event: RunEvent): void {
    if (event.kind === "start") this.start(event);
    else if (event.kind === "step") this.show(event.step, ofStep(event));
    else if (event.kind === "evaluation") this.show(event.step, { heldOut: event.loss.toFixed(3) });
    else if (event.kind === "end") this.close();
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

  private show(step: number, more: Partial<Shown>): void {
    this.shown = { ...this.shown, ...more };
    this.bar?.update(step, this.shown);
  }
}

const ofStep = ({ loss, tokensPerSecond, secondsLeft, liveBytes }: StepEvent): Partial<Shown> => ({
  loss: loss.toFixed(3),
  speed: formatCount(tokensPerSecond),
  left: formatDuration(secondsLeft),
  memory: formatBytes(liveBytes),
});

function lineOf(event: Extract<RunEvent, { kind: "sample" | "checkpoint" | "note" }>): string {
  if (event.kind === "sample") return `step ${event.step}, sample:\n${indented(event.prompt + event.text)}`;
  if (event.kind === "checkpoint") return `step ${event.step}, saved: ${event.file}`;
  return `step ${event.step}: ${event.text}`;
}

export const indented = (text: string): string => text.replaceAll(/^/gm, "  │ ");
