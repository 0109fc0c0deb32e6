import { SummaryWriter } from "../../io/tensorboard/writer.ts";
import type { EvaluationEvent, Listener, RunEvent, StepEvent } from "../events.ts";

type Scalars = Readonly<Record<string, number | undefined>>;

/** Writes losses, learning rate, norm of the gradients and speed to an event file in the run's folder. */
export class TensorBoardLog implements Listener {
  private readonly writer: SummaryWriter;

  constructor(folder: string) {
    this.writer = new SummaryWriter(folder);
  }

  on(event: RunEvent): void {
    if (event.kind === "start" && event.step > 0) this.writer.startSession(event.step + 1);
    if (event.kind === "step")
      this.add(event.step, {
        ...lossesOf("train", event),
        "optimizer/learning_rate": event.learningRate,
        "optimizer/gradient_norm": event.gradientNorm,
        "speed/tokens_per_second": event.tokensPerSecond,
      });
    if (event.kind === "evaluation") this.add(event.step, lossesOf("held_out", event));
  }

  close(): void {
    this.writer.close();
  }

  private add(step: number, scalars: Scalars): void {
    const known = Object.entries(scalars).filter((entry): entry is [string, number] => entry[1] !== undefined);
    this.writer.addScalars(known, step);
  }
}

/** The loss per text has no unit of tokens. */
const lossesOf = (part: string, { loss, bitsPerByte }: StepEvent | EvaluationEvent): Scalars =>
  bitsPerByte === undefined
    ? { [`loss/${part}`]: loss }
    : { [`nats_per_token/${part}`]: loss, [`bits_per_byte/${part}`]: bitsPerByte };
