import { SummaryWriter } from "../../io/tensorboard/writer.ts";
import type { Listener, RunEvent } from "../events.ts";

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
        ...{ "nats_per_token/train": event.loss, "bits_per_byte/train": event.bitsPerByte },
        ...{ "optimizer/learning_rate": event.learningRate, "optimizer/gradient_norm": event.gradientNorm },
        "speed/tokens_per_second": event.tokensPerSecond,
      });
    if (event.kind === "evaluation")
      this.add(event.step, { "nats_per_token/held_out": event.loss, "bits_per_byte/held_out": event.bitsPerByte });
  }

  close(): void {
    this.writer.close();
  }

  private add(step: number, scalars: Scalars): void {
    const known = Object.entries(scalars).filter((entry): entry is [string, number] => entry[1] !== undefined);
    this.writer.addScalars(known, step);
  }
}
