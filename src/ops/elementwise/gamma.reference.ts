/**
 * The log-gamma function and its derivatives in float64.
 *
 * From 1 to 3, lgamma and digamma are a factor with the same zeros times a smooth quotient, interpolated at Chebyshev
 * points. Above 3, the recurrence reduces the argument; below 1, it raises it. From 16 on, asymptotic series are used;
 * below 0, reflection formulas. Source: NIST Digital Library of Mathematical Functions, 5.5, 5.11 and 25.11.
 */

/** Coefficients of ln Γ(x)/((x − 1)(x − 2)) in powers of x − 2, the highest first. */
const logGammaQuotient = [
  3.9592899392841773e-10, -8.152852870624974e-10, -1.1901740908188623e-9, 2.444386936885692e-9, 4.305220610785349e-9,
  -8.87711600370437e-9, 3.821541398410965e-10, -9.172949166290702e-10, 2.4876913129422816e-8, -5.1889381335192836e-8,
  8.858800462314761e-8, -1.8624721164419038e-7, 4.0491176292722286e-7, -8.554195306752008e-7, 1.8077244952477939e-6,
  -3.8465374565754054e-6, 8.22227252824938e-6, -1.7661849545809686e-5, 3.8168877217049974e-5, -8.309510094797398e-5,
  0.00018255264018626728, -0.0004057073998333553, 0.0009153769221939477, -0.0021081308338353785, 0.004998641164698706,
  -0.012384192193374183, 0.032965000621155816, -0.1003173016743539, 0.42278433509846713,
];

/** Coefficients of ψ(x)/(x − root) in powers of x − 2, the highest first. */
const digammaQuotient = [
  9.518171739147029e-9, -1.903635721105846e-8, -3.093398948520762e-8, 6.186795491568026e-8, 1.0053608396456935e-7,
  -2.0107270819670245e-7, -2.9145119207885333e-8, 5.8285994586065274e-8, 4.290253291489252e-7, -8.580896982578119e-7,
  1.238910144497479e-6, -2.4781719030311023e-6, 5.253172898961469e-6, -1.0509526063726006e-5, 2.089802780670172e-5,
  -4.182492865527941e-5, 8.377787676220672e-5, -0.00016781978030629567, 0.0003364327195465597, -0.0006753127085218515,
  0.0013581421476875015, -0.0027395729429329422, 0.005552254174526186, -0.011338432550277753, 0.02344730959760139,
  -0.049551032917745826, 0.10899991701762815, -0.26073895468300085, 0.7853075386041053,
];

const root = 1.4616321449683622;
const rootRemainder = 9.549995429965697e-17; // the digits of the root beyond float64

/** From here on, asymptotic series are used. */
const FAR = 16;

const polynomial = (x: number, coefficients: readonly number[]): number =>
  coefficients.reduce((sum, coefficient) => sum * x + coefficient, 0);

/**
 * Subtracts ones from x until it is below 3. Also returns the product of the intermediate values and the sum of their
 * reciprocals.
 */
function reduced(x: number): { readonly x: number; readonly product: number; readonly sum: number } {
  let [y, product, sum] = [x, 1, 0];
  while (y >= 3) {
    y -= 1;
    product *= y;
    sum += 1 / y;
  }
  return { x: y, product, sum };
}

/** Returns x minus the nearest integer. */
const remainderOf = (x: number): number => x - Math.round(x);

export function lgamma(x: number): number {
  if (x < 0) {
    const remainder = remainderOf(x);
    if (remainder === 0 || x === Number.NEGATIVE_INFINITY) return Number.POSITIVE_INFINITY;
    return -Math.log(Math.abs(Math.sin(Math.PI * remainder)) / Math.PI) - lgamma(1 - x);
  }
  if (x >= FAR) {
    const series = [1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12];
    const tail = polynomial(1 / (x * x), series) / x + (Math.log(2 * Math.PI) - 1) / 2;
    return (x - 0.5) * (Math.log(x) - 1) + tail;
  }
  if (x < 1) return x * (x - 1) * polynomial(x - 1, logGammaQuotient) - Math.log(x);
  const { x: y, product } = reduced(x);
  return (y - 1) * (y - 2) * polynomial(y - 2, logGammaQuotient) + Math.log(product);
}

export function digamma(x: number): number {
  if (x < 0) {
    const remainder = remainderOf(x);
    return remainder === 0 ? Number.NaN : digamma(1 - x) - Math.PI / Math.tan(Math.PI * remainder);
  }
  if (x >= FAR) {
    const series = [1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12];
    return Math.log(x) - (0.5 + polynomial(1 / (x * x), series) / x) / x;
  }
  if (x < 1) return (x - (root - 1) - rootRemainder) * polynomial(x - 1, digammaQuotient) - 1 / x;
  const { x: y, sum } = reduced(x);
  return (y - root - rootRemainder) * polynomial(y - 2, digammaQuotient) + sum;
}

/**
 * Computes the derivative of order n ≥ 1 of digamma: (−1)ˢ·n!·ζ(s, x) with s = n + 1 and the Hurwitz zeta function ζ.
 */
export function polygamma(n: number, x: number): number {
  const sign = n % 2 === 0 ? -1 : 1;
  if (!(x < 0)) return sign * scaledZeta(n, Math.abs(x));
  // The sum of 1/(x + k)ˢ over all integers k is the same for x and for the remainder. Its excess terms are ζ(s, 1 −
  // x).
  const remainder = remainderOf(x);
  if (remainder === 0) return sign * Number.POSITIVE_INFINITY;
  const ofAll = sign * (factorialPower(n, remainder) + scaledZeta(n, 1 + remainder)) + scaledZeta(n, 1 - remainder);
  return ofAll - scaledZeta(n, 1 - x);
}

/** Computes n!/zⁿ⁺¹, multiplying factors in turn, so that it overflows only if the result does. */
function factorialPower(n: number, z: number): number {
  let product = 1 / z;
  for (let k = 1; k <= n; k++) product *= k / z;
  return product;
}

/** B₂ₖ/(2k)!, with the Bernoulli numbers B. */
const bernoulli = [
  1 / 12,
  -1 / 720,
  1 / 30240,
  -1 / 1209600,
  1 / 47900160,
  -691 / 1307674368000,
  1 / 74724249600,
  -3617 / 10670622842880000,
];

/** Computes n!·ζ(n + 1, x) by the Euler–Maclaurin formula: twelve terms, the integral, half a term, and the series. */
function scaledZeta(n: number, x: number): number {
  const end = x + 12;
  const integral = factorialPower(n - 1, end);
  const term = (integral * n) / end;
  let sum = integral + term / 2;
  let rising = (term * (n + 1)) / end;
  for (const [k, coefficient] of bernoulli.entries()) {
    sum += coefficient * rising;
    rising *= ((n + 2 * k + 2) / end) * ((n + 2 * k + 3) / end);
  }
  for (let k = 11; k >= 0; k--) sum += factorialPower(n, x + k);
  return sum;
}
