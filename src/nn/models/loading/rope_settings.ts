/**
 * Reads rotary position embeddings from a `config.json`: `rope_scaling`, or `rope_parameters` since version 5 of
 * `transformers`.
 */
import type { RopeDescription } from "../decoder/description.ts";
import type { Architecture } from "./architecture.ts";
import { axesKeys, checkKeys, rotationKeys, temperKeys } from "./config_fields.ts";
import type { Settings } from "./settings.ts";

type Scaling = RopeDescription["scaling"];

/** Inputs of {@link ropeOf} besides the settings of the rotation. */
export interface RopeContext {
  readonly config: Settings;
  /** The architecture. Its `localBase` only has to say whether there are two kinds of layers. */
  readonly row: Omit<Architecture, "localBase"> & { readonly localBase?: string | number | boolean };
  readonly headWidth: number;
  /** Returns the base to use if the settings have none. */
  readonly base: () => number;
}

interface ScalingContext extends RopeContext {
  /** Number of elements of each head that are rotated. */
  readonly dim: number;
}

/** The context length of the original training. The config's value takes precedence over the rotation's. */
const originalOf = (rope: Settings, { config }: RopeContext): number =>
  config.wholeIfAny("original_max_position_embeddings") ??
  rope.wholeIfAny("original_max_position_embeddings") ??
  config.whole("max_position_embeddings");

const scalings: Readonly<Record<string, (rope: Settings, context: ScalingContext) => Scaling>> = {
  default: () => undefined,
  linear: (rope) => ({ type: "linear", factor: rope.positive("factor") }),
  dynamic(rope, { config, dim }) {
    // the exponent of the base is dim / (dim - 2)
    if (dim <= 2) throw rope.wrong("rope_type", "another type if at most 2 elements of a head rotate", "dynamic");
    const originalContextLength = config.whole("max_position_embeddings");
    return { type: "dynamic", factor: rope.positive("factor"), originalContextLength };
  },
  llama3: (rope, context) => ({
    type: "llama3",
    factor: rope.positive("factor"),
    originalContextLength: originalOf(rope, context),
    lowFrequencyFactor: rope.positive("low_freq_factor"),
    highFrequencyFactor: rope.positive("high_freq_factor"),
  }),
  // with two kinds of layers, `transformers` looks for `truncate` one level too high, so it never finds it
  yarn: (rope, context) => ({
    type: "yarn",
    factor: rope.positive("factor"),
    originalContextLength: originalOf(rope, context),
    betaFast: rope.positiveIfAny("beta_fast"),
    betaSlow: rope.positiveIfAny("beta_slow"),
    attentionFactor: yarnFactor(rope),
    truncate: Boolean(context.row.localBase) || rope.flag("truncate", true),
  }),
  longrope: longRope,
  proportional,
};

/** A factor so large that a scaled pair's frequency is 0 in every dtype. */
const UNROTATED = 1e300;

/** Only the fastest pairs of a head rotate. Source: Hugging Face's `_compute_proportional_rope_parameters`. */
function proportional(rope: Settings, { row, headWidth }: ScalingContext): Scaling {
  if (row.partialRotation !== undefined)
    throw rope.wrong("rope_type", "another type if only a part of each head rotates", "proportional");
  const [factor, share] = [rope.positiveIfAny("factor") ?? 1, rope.positiveIfAny("partial_rotary_factor") ?? 1];
  const count = Math.floor((share * headWidth) / 2);
  const factors = Array.from({ length: headWidth / 2 }, (_, pair) => (pair < count ? factor : UNROTATED));
  return { type: "factors", factors };
}

/** Types of scaling of architectures that support only LongRoPE. */
const longRopeAlone: typeof scalings = {
  default: scalings["default"],
  longrope: longRope,
  su: longRope,
  yarn: longRope,
};

/**
 * Computes the attention factor as Hugging Face's `_compute_yarn_parameters` does. With DeepSeek's two settings, it is
 * a ratio.
 */
function yarnFactor(rope: Settings): number | undefined {
  const [given, mscale, all] = ["attention_factor", "mscale", "mscale_all_dim"].map((name) => rope.numberIfAny(name));
  const factor = rope.positive("factor");
  const lengthened = (scale: number) => (factor <= 1 ? 1 : 0.1 * scale * Math.log(factor) + 1);
  if (given !== undefined) return rope.positive("attention_factor");
  return mscale && all ? lengthened(mscale) / lengthened(all) : undefined;
}

/** The attention factor grows with the extension of the context: √(1 + ln(factor) / ln(original)). */
function longRope(rope: Settings, context: ScalingContext): Scaling {
  const original = originalOf(rope, context);
  const factor = rope.positiveIfAny("factor") ?? context.config.whole("max_position_embeddings") / original;
  const attentionFactor = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
  const mscale = context.row.mscales ? mscaleOf(rope) : undefined;
  const [short, long] = ["short_factor", "long_factor"].map((name) => factorsOf(rope, name, context.dim / 2));
  return {
    type: "longrope",
    short: short,
    long: long,
    originalContextLength: original,
    attentionFactor: mscale ?? rope.positiveIfAny("attention_factor") ?? attentionFactor,
  };
}

/** Phi-3.5-MoE's attention factor, the same for short and long texts. */
function mscaleOf(rope: Settings): number {
  const [short, long] = [rope.positive("short_mscale"), rope.positive("long_mscale")];
  if (long !== short) throw rope.wrong("long_mscale", `equal to short_mscale, ${short}`, long);
  return short;
}

function factorsOf(rope: Settings, name: string, pairs: number): number[] {
  const factors = rope.numbers(name);
  if (factors.length === pairs) return factors;
  throw rope.wrong(name, `${pairs} numbers, one for each pair of elements that rotates`, factors);
}

/**
 * Converts the settings of a rotation to a description.
 *
 * @param rope the settings of the rotation, if there are any
 * @throws {ArgumentError} for an unknown type of scaling.
 */
export function ropeOf(rope: Settings | undefined, context: RopeContext): RopeDescription {
  const base = rope?.positiveIfAny("rope_theta") ?? context.base();
  const alpha = context.row.alphaBase ? rope?.positiveIfAny("alpha") : undefined;
  if (rope)
    checkKeys(
      rope,
      (key) =>
        rotationKeys.has(key) ||
        (context.row.tempered && temperKeys.has(key)) === true ||
        (context.row.axes && axesKeys.has(key)) === true ||
        (context.row.mscales && /^(short|long)_mscale$/.test(key)) === true ||
        (context.row.alphaBase && key === "alpha") === true,
      "is not a setting of rotary positions",
    );
  if (rope && context.row.axes) checkSections(rope);
  const type = rope?.textIfAny("rope_type") ?? rope?.textIfAny("type") ?? "default";
  if (alpha !== undefined && type === "dynamic") {
    if (context.headWidth <= 2) throw rope!.wrong("alpha", "no alpha if heads have at most 2 elements", alpha);
    return { base: base * alpha ** (context.headWidth / (context.headWidth - 2)) };
  }
  const known = context.row.longRopeOnly ? longRopeAlone : scalings;
  const scaling = Object.hasOwn(known, type) ? known[type] : undefined;
  if (scaling === undefined) {
    const [name, expected] = [rope!.nameOf("rope_type"), Object.keys(known).join(", ")];
    throw context.config.refused("unknownScaling", `expected ${name} to be one of ${expected}, got "${type}"`);
  }
  const dim = rotatedOf(rope, type, context);
  return {
    base,
    interleaved: context.row.interleaved,
    dim: dim === context.headWidth ? undefined : dim,
    scaling: rope && scaling(rope, { ...context, dim }),
  };
}

/** Checks `mrope_section`. @throws {FileFormatError} unless it has one number each for time, rows and columns. */
function checkSections(rope: Settings): void {
  const sections = rope.get("mrope_section");
  if (sections === undefined) return;
  if (!Array.isArray(sections) || sections.length !== 3 || !sections.every(Number.isSafeInteger))
    throw rope.wrong("mrope_section", "a list of three whole numbers", sections);
}

/**
 * Number of elements of each head that are rotated. Without scaling, other architectures ignore
 * `partial_rotary_factor`.
 */
function rotatedOf(rope: Settings | undefined, type: string, { config, row, headWidth }: RopeContext): number {
  const [settings, name] = [rope ?? config, "partial_rotary_factor"];
  const factor =
    rope?.positiveIfAny(name) ?? config.positiveIfAny(row.partialField ?? name) ?? row.partialRotation ?? 1;
  if (row.partialRotation !== undefined) return Math.floor(headWidth * factor);
  if (type !== "default" && type !== "proportional" && factor !== 1)
    throw settings.wrong(name, `1, the only supported value with rope_type "${type}"`, factor);
  return headWidth;
}

/** Returns the maximum context length. Dynamic scaling extends it beyond the length of the training. */
export const stretched = (contextLength: number, rope: RopeDescription | undefined): number =>
  rope?.scaling?.type === "dynamic" ? Math.floor(contextLength * rope.scaling.factor) : contextLength;
