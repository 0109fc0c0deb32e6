/** Rotary position embeddings in a `config.json`: `rope_scaling`, or `rope_parameters` since version 5. */
import { ArgumentError } from "../../core/errors.ts";
import type { RopeDescription } from "../decoder/description.ts";
import type { Settings } from "./settings.ts";

type Scaling = RopeDescription["scaling"];
interface Context {
  readonly config: Settings;
  /** The longest text of the model. */
  readonly contextLength: number;
}

const originalOf = (rope: Settings, { config, contextLength }: Context): number =>
  rope.wholeIfAny("original_max_position_embeddings") ??
  config.wholeIfAny("original_max_position_embeddings") ??
  contextLength;

const scalings: Readonly<Record<string, (rope: Settings, context: Context) => Scaling>> = {
  default: () => undefined,
  linear: (rope) => ({ type: "linear", factor: rope.positive("factor") }),
  dynamic: (rope, context) => ({
    ...{ type: "dynamic", factor: rope.positive("factor"), originalContextLength: context.contextLength },
  }),
  llama3: (rope, context) => ({
    ...{ type: "llama3", factor: rope.positive("factor"), originalContextLength: originalOf(rope, context) },
    lowFrequencyFactor: rope.positive("low_freq_factor"),
    highFrequencyFactor: rope.positive("high_freq_factor"),
  }),
  yarn: (rope, context) => ({
    ...{ type: "yarn", factor: rope.positive("factor"), originalContextLength: originalOf(rope, context) },
    ...{ betaFast: rope.positiveIfAny("beta_fast"), betaSlow: rope.positiveIfAny("beta_slow") },
    ...{ attentionFactor: rope.positiveIfAny("attention_factor"), truncate: rope.flag("truncate", true) },
  }),
  longrope: longRope,
};

/** Results grow with how much longer texts may be: √(1 + ln(longer) / ln(original)). */
function longRope(rope: Settings, context: Context): Scaling {
  const original = originalOf(rope, context);
  const factor = rope.positiveIfAny("factor") ?? context.contextLength / original;
  const attentionFactor = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
  return {
    ...{ type: "longrope", short: rope.numbers("short_factor"), long: rope.numbers("long_factor") },
    ...{ originalContextLength: original, attentionFactor: rope.positiveIfAny("attention_factor") ?? attentionFactor },
  };
}

/**
 * @param rope the settings of the rotation, if there are any
 * @param fallback the base where nothing says it
 * @throws {ArgumentError} for a scaling that is not known.
 */
export function ropeOf(
  rope: Settings | undefined,
  context: Context,
  fallback: number,
  headWidth: number,
): RopeDescription {
  const { config } = context;
  const base = rope?.positiveIfAny("rope_theta") ?? config.positiveIfAny("rope_theta") ?? fallback;
  const partial = rope?.positiveIfAny("partial_rotary_factor") ?? config.positiveIfAny("partial_rotary_factor") ?? 1;
  const dim = partial === 1 ? undefined : Math.floor(headWidth * partial);
  return { base, dim, scaling: rope && scalingOf(rope, context) };
}

function scalingOf(rope: Settings, context: Context): Scaling {
  const type = rope.textIfAny("rope_type") ?? rope.textIfAny("type") ?? "default";
  const scaling = Object.hasOwn(scalings, type) ? scalings[type] : undefined;
  if (scaling) return scaling(rope, context);
  throw new ArgumentError(
    "loadModel",
    "unknownScaling",
    `${context.config.path}: expected rope_type to be one of ${Object.keys(scalings).join(", ")}, got "${type}"`,
  );
}

/** How long texts may be: a dynamic scaling makes them longer than the model was trained on. */
export const stretched = (contextLength: number, rope: RopeDescription | undefined): number =>
  rope?.scaling?.type === "dynamic" ? Math.floor(contextLength * rope.scaling.factor) : contextLength;
