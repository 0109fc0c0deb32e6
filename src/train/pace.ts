/** How fast a run is. */

/** Weighs the latest steps most: a step's weight halves after this many. */
const HALF_LIFE = 20;
const DECAY = 0.5 ** (1 / HALF_LIFE);

/** The running mean of the seconds a step takes, from moments of a clock. What happens before `start` does not count. */
export class Pace {
  private seconds = 0;
  private weight = 0;
  private since = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  start(): void {
    this.since = this.now();
  }

  /** A step has ended, and the next begins. Returns the mean seconds of a step. */
  lap(): number {
    const now = this.now();
    this.seconds = DECAY * this.seconds + (1 - DECAY) * ((now - this.since) / 1000);
    this.weight = DECAY * this.weight + (1 - DECAY);
    this.since = now;
    return this.seconds / this.weight;
  }
}
