/** Reads mixtures of experts from a `config.json`. */
import type { ExpertsDescription } from "../decoder/description.ts";
import type { Architecture } from "./architecture.ts";
import type { Settings } from "./settings.ts";

/** Reads the mixture of experts of a layer; undefined if the config has no experts. */
export function expertsOf(row: NonNullable<Architecture["experts"]>, config: Settings): ExpertsDescription | undefined {
  const names = ["num_local_experts", "num_experts", "n_routed_experts"];
  const name = names.find((key) => config.get(key) !== undefined);
  const count = name === undefined ? 0 : config.whole(name, 0);
  if (count === 0) return undefined;
  const perToken = config.wholeIfAny("num_experts_per_tok") ?? 0; // checked when a folder is loaded
  if (perToken > count) throw config.wrong("num_experts_per_tok", `at most ${count}`, perToken);
  if (row.scalesInputs)
    return { count, perToken, normalized: false, scores: "sigmoid", scalesInputs: true, shared: besideOf(row, config) };
  if (row.sparseMixer) {
    if (count < 2) throw config.wrong(name!, "at least 2", count);
    return { count, perToken: 2, normalized: false, mixerThreshold: 2 * config.number("router_jitter_noise") };
  }
  if (row.limited) return { count, perToken, normalized: false, ...limitedOf(config, count) };
  const normalized = row.normalized === true || config.flag("norm_topk_prob", row.grouped ? false : undefined);
  const { routerBias, bias, epsilon, grouped, sigmoid, corrected } = row;
  return {
    count,
    perToken,
    normalized,
    routerBias,
    bias,
    epsilon,
    shared: besideOf(row, config),
    ...(grouped && groupedOf(row, config, count)),
    ...(sigmoid && { scores: "sigmoid", corrected: config.flag("use_expert_bias", true) }),
    ...(sigmoid && { scale: config.numberIfAny("routed_scaling_factor") }),
    ...(corrected && { corrected, leastSum: config.positive("moe_norm_min") }),
  };
}

/** Returns the shared expert, which processes all tokens; undefined if there is none. */
function besideOf({ shared, beside }: NonNullable<Architecture["experts"]>, config: Settings) {
  if (shared !== undefined) return { hidden: config.whole(shared), gated: true };
  if (beside === undefined) return (config.wholeIfAny("n_shared_experts", 0) ?? 0) > 0 ? sharedOf(config) : undefined;
  const hidden = config.whole(beside, 0);
  return hidden > 0 ? { hidden, gated: false } : undefined;
}

/** DeepSeek-V3's router. */
function groupedOf(row: NonNullable<Architecture["experts"]>, config: Settings, count: number) {
  const groups = groupsOf(config, count, 2);
  return {
    scores: "sigmoid",
    corrected: true,
    scale: config.number("routed_scaling_factor"),
    groups: groups.count > 1 ? groups : undefined,
    shared: row.beside === undefined ? sharedOf(config) : besideOf(row, config),
  } as const;
}

/** DeepSeek-V2's router. */
function limitedOf(config: Settings, count: number): Partial<ExpertsDescription> {
  const method = config.textIfAny("topk_method");
  if (method !== "greedy" && method !== "group_limited_greedy")
    throw config.wrong("topk_method", "greedy or group_limited_greedy", method);
  const groups = method === "greedy" ? undefined : groupsOf(config, count, 1);
  return { scale: config.number("routed_scaling_factor"), groups, shared: sharedOf(config) };
}

const sharedOf = (config: Settings): ExpertsDescription["shared"] => ({
  hidden: config.whole("moe_intermediate_size") * config.whole("n_shared_experts"),
  gated: false,
});

function groupsOf(config: Settings, count: number, best: number): NonNullable<ExpertsDescription["groups"]> {
  const groups = { count: config.whole("n_group"), chosen: config.whole("topk_group"), best };
  if (count % groups.count !== 0 || count / groups.count < best)
    throw config.wrong(
      "n_group",
      `a divisor of n_routed_experts or num_experts (${count}), with at least ${best} of them each`,
      groups.count,
    );
  if (groups.chosen > groups.count) throw config.wrong("topk_group", `at most ${groups.count}`, groups.chosen);
  return groups;
}

/** Whether a layer has experts. */
export function isSparse(config: Settings, index: number): boolean {
  const dense = config.get("mlp_only_layers") ?? [];
  if (!Array.isArray(dense) || !dense.every(Number.isSafeInteger))
    throw config.wrong("mlp_only_layers", "a list of layer indices", dense);
  const types = config.get("mlp_layer_types");
  if (types !== undefined) return isSparseKind(types, config, index);
  if (index < (config.wholeIfAny("first_k_dense_replace", 0) ?? 0)) return false;
  return !dense.includes(index) && (index + 1) % (config.wholeIfAny("decoder_sparse_step") ?? 1) === 0;
}

/** @throws {FileFormatError} if the list does not have one kind per layer. */
function isSparseKind(types: unknown, config: Settings, index: number): boolean {
  const count = config.whole("num_hidden_layers");
  const isKnown = (type: unknown) => type === "dense" || type === "sparse";
  if (Array.isArray(types) && types.length >= count && types.every(isKnown)) return types[index] === "sparse";
  throw config.wrong("mlp_layer_types", `a list of ${count} values, each dense or sparse`, types);
}
