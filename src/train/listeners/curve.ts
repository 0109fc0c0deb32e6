import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withFileErrors } from "../../io/file_errors.ts";
import { BITS_PER_BYTE, type Curves, drawCurve, type Point, toPng } from "../curve.ts";
import { type EvaluationEvent, type Listener, type RunEvent, type StepEvent, shownLoss } from "../events.ts";

/** The file names of the curve in a run's folder. */
export const CURVE_FILES = { svg: "loss.svg", png: "loss.png" } as const;

/**
 * Draws the loss curve into the run's folder: the SVG at each evaluation and checkpoint, both files at the end.
 *
 * @param earlier the points of earlier sessions
 * @param unit the unit of losses
 */
export class CurveFiles implements Listener {
  private readonly training: Point[];
  private readonly heldOut: Point[];

  constructor(
    private readonly folder: string,
    earlier: Curves = { training: [], heldOut: [] },
    private readonly unit: string = BITS_PER_BYTE,
  ) {
    this.training = [...earlier.training];
    this.heldOut = [...earlier.heldOut];
  }

  /** The points so far. */
  get curves(): Curves {
    return { training: this.training, heldOut: this.heldOut };
  }

  on(event: RunEvent): void {
    if (event.kind === "step") this.training.push(pointOf(event));
    if (event.kind === "evaluation") this.heldOut.push(pointOf(event));
    if (event.kind === "evaluation" || event.kind === "checkpoint") this.draw();
  }

  async close(): Promise<void> {
    replaceFile(join(this.folder, CURVE_FILES.png), await toPng(this.draw()));
  }

  private draw(): string {
    const svg = drawCurve({ training: this.training, heldOut: this.heldOut }, this.unit);
    replaceFile(join(this.folder, CURVE_FILES.svg), svg);
    return svg;
  }
}

/** Returns the loss of an event, as it is drawn. */
export const pointOf = (event: StepEvent | EvaluationEvent): Point => ({ step: event.step, loss: shownLoss(event) });

/** Replaces a file atomically: readers never see a partial picture, even if the disk is full. @throws {FileError} */
function replaceFile(path: string, content: string | Uint8Array): void {
  const part = `${path}.part`;
  try {
    withFileErrors("train", path, () => writeFileSync(part, content));
    renameSync(part, path);
  } finally {
    rmSync(part, { force: true });
  }
}
