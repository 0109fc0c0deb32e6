import { cos, i0e, i1e } from "../ops/index.ts";
import type { Generator } from "../random/generator.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import {
  abs,
  add,
  div,
  expandTo,
  floor,
  ge,
  log,
  lt,
  mul,
  neg,
  sqrt,
  square,
  sub,
  sumOf,
  type Value,
  where,
} from "./arithmetic.ts";
import { constrained, Distribution, type DistributionOptions, positive, real } from "./distribution.ts";
import { normal, uniformAboveZero } from "./noise.ts";
import { portableAtan, portableLog } from "./portable.ts";
import { firstAccepted } from "./standard_gamma.ts";

/** Parameters of {@link VonMises}. */
export interface VonMisesParameters extends DistributionOptions {
  /** The mean angle, in radians. */
  loc: Value;
  /** The concentration, above 0. */
  concentration: Value;
}
/** The ways to pass the parameters of {@link VonMises}. */
export type VonMisesArguments =
  | [loc: Value, concentration: Value, options?: DistributionOptions]
  | [parameters: VonMisesParameters];

const readVonMises = constrained("VonMises", { loc: real, concentration: positive });

/**
 * The von Mises distribution of angles in radians, with a density proportional to exp(concentration · cos(x − loc)).
 * Samples are in [−π, π].
 *
 * @example
 * new distributions.VonMises(0, 1).logProb(0); // float32 -1.073791
 *
 * @throws {ArgumentError} unless `loc` is finite and `concentration` above 0.
 * @throws {ShapeError} if the parameters can't be broadcast.
 */
export class VonMises extends Distribution {
  readonly loc: Tensor;
  readonly concentration: Tensor;

  constructor(...options: VonMisesArguments);
  constructor(...values: unknown[]) {
    const { loc, concentration } = readVonMises(values);
    super(loc, loc.shape, [], real);
    [this.loc, this.concentration] = [loc, concentration];
  }

  /** The mean angle. */
  override get mean(): Tensor {
    return this.loc;
  }
  override get mode(): Tensor {
    return this.loc;
  }
  /** The circular variance, 1 − I₁(concentration)/I₀(concentration). */
  override get variance(): Tensor {
    return sub(1, this.resultant());
  }

  /**
   * Best and Fisher's rejection from a wrapped Cauchy distribution, "Efficient simulation of the von Mises
   * distribution", 1979. The quotient of two normal numbers is the tangent of half a uniform angle θ, and the proposal
   * is 2 arctan((1 − ρ)/(1 + ρ) tan θ/2).
   */
  protected override draw(shape: Shape, generator: Generator | undefined): Tensor {
    const source = { dtype: this.dtype, generator };
    const k = expandTo(this.concentration, shape);
    const root = sqrt(add(mul(square(k), 4), 1));
    const tau = sqrt(add(root, 1));
    const rho = div(mul(mul(tau, k), 2), mul(add(tau, Math.SQRT2), add(root, 1)));
    const ratio = div(sub(1, rho), add(rho, 1));
    const r = div(add(square(rho), 1), mul(rho, 2));
    const squareLessOne = square(div(sub(1, square(rho)), mul(rho, 2)));
    const angle = firstAccepted(shape, k, () => {
      const [x, y] = [normal(shape, source), normal(shape, source)];
      const u = uniformAboveZero(shape, source);
      const z = div(sub(square(x), square(y)), add(square(x), square(y)));
      const c = mul(k, div(squareLessOne, add(r, z)));
      const isAccepted = ge(sub(add(portableLog(div(c, u)), 1), c), 0);
      const half = portableAtan(mul(ratio, abs(div(y, x))));
      return { value: mul(where(lt(mul(x, y), 0), neg(half), half), 2), isAccepted };
    });
    const sum = add(angle, this.loc);
    return sub(sum, mul(floor(div(add(sum, Math.PI), 2 * Math.PI)), 2 * Math.PI));
  }
  protected override density(value: Tensor): Tensor {
    const rest = add(log(i0e(this.concentration)), Math.log(2 * Math.PI));
    return sub(mul(this.concentration, sub(cos(sub(value, this.loc)), 1)), rest);
  }
  protected override uncertainty(): Tensor {
    const k = this.concentration;
    const rest = mul(k, sub(1, this.resultant()));
    return sumOf(log(i0e(k)), rest, Math.log(2 * Math.PI));
  }

  private resultant(): Tensor {
    return div(i1e(this.concentration), i0e(this.concentration));
  }
}
