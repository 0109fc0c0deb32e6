/**
 * Optimizers as their papers and PyTorch's documentation describe them, one parameter at a time, in float64 or with
 * each operation rounded.
 */

/** The parts of each optimizer. */
export interface OracleOptions {
  readonly optimizer: "AdamW" | "Adam" | "SGD" | "Lion";
  readonly lr: number;
  readonly betas?: readonly [number, number];
  readonly eps?: number;
  readonly weightDecay?: number;
  readonly amsgrad?: boolean;
  readonly maximize?: boolean;
  readonly momentum?: number;
  readonly dampening?: number;
  readonly nesterov?: boolean;
}

export type Round = (value: number) => number;

/** A parameter with its state in an optimizer. */
export class Oracle {
  readonly p: Float64Array;
  /** The state: the momentum or the moments. */
  readonly state: readonly [Float64Array, Float64Array, Float64Array];
  steps = 0;
  private readonly options: Required<OracleOptions>;
  private readonly beta1: number;
  private readonly beta2: number;
  /** 1 - βᵗ for the first and the second moment. */
  private corrections = { first: 0, second: 0 };

  /**
   * @param round applied to each operation: exact, or to a dtype
   * @param store applied to the parameter after each step
   */
  constructor(
    options: OracleOptions,
    start: ArrayLike<number>,
    private readonly round: Round = (value) => value,
    private readonly store: Round = (value) => value,
  ) {
    this.options = { ...defaults, betas: options.optimizer === "Lion" ? [0.9, 0.99] : [0.9, 0.999], ...options };
    [this.beta1, this.beta2] = this.options.betas;
    this.p = Float64Array.from(start);
    const zeros = () => new Float64Array(start.length);
    this.state = [zeros(), zeros(), zeros()];
  }

  step(gradient: ArrayLike<number>): void {
    this.steps++;
    this.corrections = { first: 1 - this.beta1 ** this.steps, second: 1 - this.beta2 ** this.steps };
    const { optimizer, maximize } = this.options;
    for (let i = 0; i < this.p.length; i++) {
      const g = maximize ? -gradient[i] : gradient[i];
      const next = optimizer === "SGD" ? this.sgd(i, g) : optimizer === "Lion" ? this.lion(i, g) : this.adam(i, g);
      this.p[i] = this.store(next);
    }
  }

  private average(x: number, beta: number, y: number): number {
    const r = this.round;
    return r(r(beta * x) + r((1 - beta) * y));
  }

  private adam(i: number, gradient: number): number {
    const { lr, eps, weightDecay, amsgrad, optimizer } = this.options;
    const r = this.round;
    const m = this.state[0];
    const v = this.state[1];
    const w = this.state[2];
    const isDecoupled = optimizer === "AdamW";
    const g = isDecoupled ? gradient : r(gradient + r(weightDecay * this.p[i]));
    const p = isDecoupled ? r(this.p[i] - r(lr * weightDecay * this.p[i])) : this.p[i];
    m[i] = this.average(m[i], this.beta1, g);
    v[i] = this.average(v[i], this.beta2, r(g * g));
    w[i] = Math.max(w[i], v[i]);
    const first = r(m[i] / this.corrections.first);
    const second = r((amsgrad ? w[i] : v[i]) / this.corrections.second);
    return r(p - r(r(lr * first) / r(r(Math.sqrt(second)) + eps)));
  }

  private sgd(i: number, gradient: number): number {
    const { lr, momentum, dampening, nesterov, weightDecay } = this.options;
    const r = this.round;
    const m = this.state[0];
    const g = r(gradient + r(weightDecay * this.p[i]));
    if (momentum === 0) return r(this.p[i] - r(lr * g));
    m[i] = this.steps === 1 ? g : r(r(momentum * m[i]) + r((1 - dampening) * g));
    return r(this.p[i] - r(lr * (nesterov ? r(g + r(momentum * m[i])) : m[i])));
  }

  private lion(i: number, g: number): number {
    const { lr, weightDecay } = this.options;
    const r = this.round;
    const m = this.state[0];
    const direction = Math.sign(this.average(m[i], this.beta1, g));
    m[i] = this.average(m[i], this.beta2, g);
    return r(this.p[i] - r(lr * r(direction + r(weightDecay * this.p[i]))));
  }
}

const defaults = {
  eps: 1e-8,
  weightDecay: 0,
  amsgrad: false,
  maximize: false,
  momentum: 0,
  dampening: 0,
  nesterov: false,
} as const;
