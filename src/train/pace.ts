/** Measures the speed of a run. */

/** The weight of a step in the moving average halves after this many steps. */
const HALF_LIFE = 20;
const DECAY = 0.5 ** (1 / HALF_LIFE);

/** An exponential moving average of the seconds per step. Time before `start` is not counted. */
export class Pace {
  private seconds = 0;
  private weight = 0;
  private since = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  start(): void {
    this.since = this.now();
  }

  /** Ends a step and starts the next one. Returns the mean seconds per step. */
  lap(): number {
    const now = this.now();
    this.seconds = DECAY * this.seconds + (1 - DECAY) * ((now - this.since) / 1000);
    this.weight = DECAY * this.weight + (1 - DECAY);
    this.since = now;
    return this.seconds / this.weight;
  }
}
