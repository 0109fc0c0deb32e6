/** Reads Falcon-H1's layers: attention and a state space layer in parallel, with factors of inputs and outputs. */
import type { AttentionDescription, FeedForwardDescription, StateSpaceDescription } from "../decoder/description.ts";
import { checkSilu, limitsOf } from "./recurrent.ts";
import type { Settings } from "./settings.ts";

/** Reads a list of numbers. Default: all 1. */
function factorsOf(config: Settings, name: string, count: number): number[] {
  const given = config.get(name) ?? Array<number>(count).fill(1);
  const isNumber = (value: unknown) => typeof value === "number" && Number.isFinite(value);
  if (Array.isArray(given) && given.length === count && given.every(isNumber)) return given;
  throw config.wrong(name, `a list of ${count} numbers`, given);
}

/** Returns the state space layer, which all blocks have. Source: Hugging Face's `FalconH1Mixer`. */
export function falconH1StateSpace(config: Settings): StateSpaceDescription {
  checkSilu(config);
  const [heads, groups] = [config.whole("mamba_n_heads"), config.whole("mamba_n_groups")];
  const inner = config.wholeIfAny("mamba_d_ssm") ?? config.whole("mamba_expand") * config.whole("hidden_size");
  if (inner % heads !== 0) throw config.wrong("mamba_n_heads", `a divisor of mamba_d_ssm, ${inner}`, heads);
  const given = config.get("mamba_d_head");
  if (given !== "auto" && config.whole("mamba_d_head") !== inner / heads)
    throw config.wrong("mamba_d_head", `"auto" or mamba_d_ssm / mamba_n_heads, ${inner / heads}`, given);
  if (heads % groups !== 0) throw config.wrong("mamba_n_groups", "a divisor of mamba_n_heads", groups);
  const isBefore = config.flag("mamba_norm_before_gate", false);
  return {
    kind: "stateSpace",
    heads,
    headWidth: inner / heads,
    groups,
    stateSize: config.whole("mamba_d_state"),
    kernel: config.whole("mamba_d_conv"),
    bias: config.flag("mamba_proj_bias", false),
    beside: true,
    convolutionBias: config.flag("mamba_conv_bias", false),
    eps: config.positive("rms_norm_eps"),
    outputBias: config.flag("projectors_bias", false),
    norm: config.flag("mamba_rms_norm", false) ? (isBefore ? "beforeGate" : "afterGate") : "none",
    factors: {
      input: config.number("ssm_in_multiplier"),
      parts: factorsOf(config, "ssm_multipliers", 5),
      output: config.number("ssm_out_multiplier"),
    },
    limits: limitsOf(config),
  };
}

/** Returns the factors of attention. The factor of the keys is applied to the scores. */
export const falconH1Attention = (config: Settings, headWidth: number): Partial<AttentionDescription> => ({
  factors: { input: config.number("attention_in_multiplier"), output: config.number("attention_out_multiplier") },
  scale: config.number("key_multiplier") / Math.sqrt(headWidth),
});

/** Returns the factors of the feed-forward. */
export function falconH1FeedForward(config: Settings): FeedForwardDescription["factors"] {
  const [gate, output] = factorsOf(config, "mlp_multipliers", 2);
  return { gate: gate, output: output };
}
