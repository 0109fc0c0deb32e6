/** Reads the `scheduler_config.json` of `diffusers`. */
import { keysOf } from "../core/records.ts";
import type { Settings } from "../nn/models/loading/settings.ts";
import type { Scheduler, SchedulerKind } from "./scheduler.ts";
import { ddim, ddpm, dpmSolver, euler, eulerAncestral, flowMatch, pndm } from "./schedulers.ts";

type Options = Readonly<Record<string, unknown>>;

/** The functions that make schedulers, by their names here. */
const makers: Readonly<Record<SchedulerKind, (options: Options) => Scheduler>> = {
  ddpm,
  ddim,
  pndm,
  euler,
  eulerAncestral,
  dpmSolver,
  flowMatch,
};

/** The names of schedulers. */
export const schedulerKinds = keysOf(makers);

/** The classes of `diffusers`. */
const kinds: Readonly<Record<string, SchedulerKind>> = {
  DDPMScheduler: "ddpm",
  DDIMScheduler: "ddim",
  PNDMScheduler: "pndm",
  EulerDiscreteScheduler: "euler",
  EulerAncestralDiscreteScheduler: "eulerAncestral",
  DPMSolverMultistepScheduler: "dpmSolver",
  FlowMatchEulerDiscreteScheduler: "flowMatch",
};

/** The options by their names in configs, and the values that have other names here. */
const names: Readonly<Record<string, readonly [name: string, values?: Readonly<Record<string, string>>]>> = {
  num_train_timesteps: ["trainSteps"],
  beta_start: ["betaStart"],
  beta_end: ["betaEnd"],
  beta_schedule: ["betaSchedule", { scaled_linear: "scaledLinear", squaredcos_cap_v2: "squaredCosine" }],
  trained_betas: ["trainedBetas"],
  prediction_type: ["predictionType", { v_prediction: "velocity" }],
  timestep_spacing: ["timestepSpacing"],
  steps_offset: ["stepsOffset"],
  clip_sample: ["clipSample"],
  clip_sample_range: ["clipSampleRange"],
  thresholding: ["thresholding"],
  dynamic_thresholding_ratio: ["dynamicThresholdingRatio"],
  sample_max_value: ["sampleMaxValue"],
  variance_type: ["varianceType", { fixed_small: "fixedSmall", fixed_large: "fixedLarge" }],
  set_alpha_to_one: ["setAlphaToOne"],
  use_karras_sigmas: ["useKarrasSigmas"],
  final_sigmas_type: ["finalSigmasType", { sigma_min: "sigmaMin" }],
  solver_order: ["solverOrder"],
  solver_type: ["solverType"],
  lower_order_final: ["lowerOrderFinal"],
  shift: ["shift"],
  stochastic_sampling: ["stochasticSampling"],
};

/** Options of every scheduler, except flow matching. */
const schedule = [
  "trainSteps",
  "betaStart",
  "betaEnd",
  "betaSchedule",
  "trainedBetas",
  "predictionType",
  "timestepSpacing",
  "stepsOffset",
];
/** Options that are kept if another scheduler is chosen. The new scheduler has its default timesteps. */
const noise = schedule.filter((name) => name !== "timestepSpacing");
const thresholding = ["thresholding", "dynamicThresholdingRatio", "sampleMaxValue"];
const clipping = ["clipSample", "clipSampleRange", ...thresholding];
const sigmas = ["useKarrasSigmas", "finalSigmasType"];
const known: Readonly<Record<SchedulerKind, readonly string[]>> = {
  ddpm: [...schedule, ...clipping, "varianceType"],
  ddim: [...schedule, ...clipping, "setAlphaToOne"],
  pndm: [...schedule, "setAlphaToOne"],
  euler: [...schedule, ...sigmas],
  eulerAncestral: schedule,
  dpmSolver: [...schedule, ...sigmas, ...thresholding, "solverOrder", "solverType", "lowerOrderFinal"],
  flowMatch: ["trainSteps", "shift", "stochasticSampling"],
};

/** Settings that must have these values, because others are not supported, unless a scheduler has the option. */
const fixed: Readonly<Record<string, readonly unknown[]>> = {
  rescale_betas_zero_snr: [false],
  interpolation_type: ["linear"],
  timestep_type: ["discrete"],
  use_exponential_sigmas: [false],
  use_beta_sigmas: [false],
  use_lu_lambdas: [false],
  use_flow_sigmas: [false],
  use_dynamic_shifting: [false],
  euler_at_final: [false],
  invert_sigmas: [false],
  sigma_min: [null],
  sigma_max: [null],
  shift_terminal: [null],
  lambda_min_clipped: [null],
  variance_type: [null],
  use_karras_sigmas: [false],
  thresholding: [false],
  final_sigmas_type: ["zero"],
  skip_prk_steps: [true],
  algorithm_type: ["dpmsolver++"],
};

/** Returns a config's options for a scheduler. A scheduler of a different kind gets only the noise options. */
export function optionsOf(config: Settings, kind: SchedulerKind, isOther = false): Options {
  const options = Object.entries(names).flatMap(([name, [option, values = {}]]): [string, unknown][] => {
    const value = config.get(name);
    const isUsed = known[kind].includes(option) && !(isOther && !noise.includes(option));
    if (value === undefined || !isUsed) return [];
    return [[option, typeof value === "string" ? (values[value] ?? value) : value]];
  });
  if (isOther && known[kind].includes("clipSample")) options.push(["clipSample", false]);
  return Object.fromEntries(options);
}

/**
 * Creates the scheduler of a config, or another kind of scheduler with the config's noise options.
 *
 * @throws {ArgumentError} `unknownScheduler`, `unsupportedScheduler`, `unsupportedConfig`.
 */
export function schedulerOf(config: Settings, kind?: SchedulerKind): Scheduler {
  const given = config.textIfAny("_class_name") ?? "";
  const own = Object.hasOwn(kinds, given) ? kinds[given] : undefined;
  const chosen = kind ?? own;
  if (chosen === undefined)
    throw config.refused(
      "unknownScheduler",
      `expected _class_name to be one of ${Object.keys(kinds).join(", ")}, got "${given}"; ` +
        'choose another one: { scheduler: "dpmSolver" }',
    );
  if (chosen !== own && own !== undefined && (chosen === "flowMatch") !== (own === "flowMatch"))
    throw config.refused("unsupportedScheduler", `${given} has another kind of noise than "${chosen}"`);
  const isOption = (name: string) => names[name] !== undefined && known[chosen].includes(names[name][0]);
  if (chosen === own)
    for (const [name, values] of Object.entries(fixed))
      if (config.get(name) !== undefined && !isOption(name) && !values.includes(config.get(name)))
        throw config.refused(
          "unsupportedConfig",
          `expected ${name} to be ${JSON.stringify(values[0])}, the only supported value, ` +
            `got ${JSON.stringify(config.get(name))}`,
        );
  return makers[chosen](optionsOf(config, chosen, chosen !== own));
}
