/** Saves and loads adapters in the format of `peft` (PyPI): `adapter_config.json` and `adapter_model.safetensors`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { noGrad } from "../../../autograd/modes.ts";
import { ArgumentError, FileFormatError } from "../../../core/errors.ts";
import { aPath, instanceOf } from "../../../core/kinds.ts";
import { operand, parameters } from "../../../core/parameters.ts";
import { fileError, withFileErrors } from "../../../io/file_errors.ts";
import { isJsonObject, parseJson } from "../../../io/json.ts";
import type { SafetensorsReader } from "../../../io/safetensors/file.ts";
import { openFor } from "../../../io/safetensors/open.ts";
import { saveSafetensors } from "../../../io/safetensors/save.ts";
import { copy_ } from "../../../ops/copy/inplace.ts";
import { detach } from "../../../ops/gradient/backward.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { formatShape, sameShape } from "../../../tensor/shape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type Differences, type StateDict, StateDictError } from "../../layers/state_dict.ts";
import { Decoder } from "../decoder/decoder.ts";
import { Encoder } from "../encoder/encoder.ts";
import { Settings } from "../loading/settings.ts";
import { type AdaptableModel, aLoadedModel, LoraAdapter, layersOf, linearLayers } from "./lora.ts";

const CONFIG = "adapter_config.json";
const WEIGHTS = "adapter_model.safetensors";

const saveParameters = parameters("saveLora", {
  adapter: operand(instanceOf<LoraAdapter<AdaptableModel>>(LoraAdapter, "an adapter that lora returned")),
  folder: operand(aPath),
});

/**
 * Saves an adapter in PEFT's format, for `PeftModel.from_pretrained` and {@link loadLora}.
 *
 * @param folder created if it does not exist
 *
 * @example
 * await nn.saveLora(adapter, "adapter");
 *
 * @throws {FileError} if it can't be written.
 */
export function saveLora(adapter: LoraAdapter<AdaptableModel>, folder: string): Promise<void>;
export async function saveLora(...values: unknown[]): Promise<void> {
  const { adapter, folder } = saveParameters(values);
  const names = adapter.model.huggingFaceNames();
  const state: StateDict = {};
  noGrad(() => {
    for (const [path, { down, up }] of adapter.layers) {
      state[partOf(names.get(path)!, "A")] = detach(down.weight);
      state[partOf(names.get(path)!, "B")] = inOrder(adapter.model, path, detach(up.weight), "huggingFace");
    }
  });
  const config = join(folder, CONFIG);
  try {
    const { mkdir, writeFile } = await import("node:fs/promises");
    await mkdir(folder, { recursive: true });
    await writeFile(
      config,
      `${JSON.stringify(
        configOf(
          adapter,
          [...adapter.layers.keys()].map((path) => names.get(path)!),
        ),
        null,
        2,
      )}\n`,
    );
  } catch (cause) {
    throw fileError("saveLora", config, cause);
  }
  await saveSafetensors(join(folder, WEIGHTS), state, { metadata: { format: "pt" } });
}

function configOf(
  { model, rank, alpha, dropout, baseModel }: LoraAdapter<AdaptableModel>,
  names: readonly string[],
): object {
  // PEFT's target names are those after the layer's index: `self_attn.q_proj`
  const targets = new Set(names.map((name) => name.replace(/^.*\.\d+\./, "")));
  return {
    peft_type: "LORA",
    task_type: taskOf(model),
    base_model_name_or_path: baseModel ?? null,
    inference_mode: true,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: dropout,
    target_modules: [...targets].sort(),
    bias: "none",
    fan_in_fan_out: model.description.architecture === "gpt2",
    modules_to_save: null,
    use_rslora: false,
    use_dora: false,
    rank_pattern: {},
    alpha_pattern: {},
    init_lora_weights: true,
  };
}

/** PEFT's name of the model's task; null if PEFT has no name for the head. */
function taskOf(model: AdaptableModel): string | null {
  if (model instanceof Decoder) return "CAUSAL_LM";
  if (!(model instanceof Encoder)) return null;
  if (model.task === undefined) return "FEATURE_EXTRACTION";
  return { classify: "SEQ_CLS", tag: "TOKEN_CLS", answer: "QUESTION_ANS", fillMask: null }[model.task];
}

const loadParameters = parameters("loadLora", {
  model: operand(aLoadedModel),
  folder: operand(aPath),
});

/**
 * Adds an adapter in PEFT's format to a model, as `lora` does.
 *
 * @param folder with `adapter_config.json` and `adapter_model.safetensors`
 *
 * @example
 * const adapter = nn.loadLora(model, "adapter");
 * adapter.merge();
 *
 * @throws {FileError} for files that can't be read. @throws {FileFormatError} for damaged files.
 * @throws {StateDictError} for an adapter of another model. @throws {ArgumentError} for unsupported settings, such as
 * DoRA, naming them.
 */
export function loadLora<M extends AdaptableModel>(model: M, folder: string): LoraAdapter<M>;
export function loadLora(...values: unknown[]): LoraAdapter<AdaptableModel> {
  const { model, folder } = loadParameters(values);
  const { scale, ...settings } = readConfig(join(folder, CONFIG));
  const { rank, dropout, baseModel } = settings;
  using file = openFor("loadLora", join(folder, WEIGHTS));
  const linear = linearLayers(model);
  const names = model.huggingFaceNames();
  const isThere = (path: string) => (["A", "B"] as const).some((part) => file.has(partOf(names.get(path)!, part)));
  const chosen = new Map([...linear].filter(([path]) => isThere(path)));
  const layers = layersOf(model, chosen, { rank, scale, dropout });
  const matched = [...layers].flatMap(([path, { down, up }]) => [
    { path, target: down.weight, name: partOf(names.get(path)!, "A") },
    { path, target: up.weight, name: partOf(names.get(path)!, "B") },
  ]);
  const of = baseModel === undefined ? "the model" : `the model; the adapter was trained for ${baseModel}`;
  checkTensors(file, new Map(matched.map(({ target, name }) => [target, name])), of);
  noGrad(() => {
    for (const { path, target, name } of matched) {
      const isUp = target === layers.get(path)!.up.weight;
      copy_(target, isUp ? inOrder(model, path, file.tensor(name), "llamaCpp") : file.tensor(name));
    }
  });
  return new LoraAdapter(model, { ...settings, baseModel: baseModel ?? model.origin }, layers);
}

const partOf = (name: string, part: "A" | "B"): string => `base_model.model.${name}.lora_${part}.weight`;

/** @throws {StateDictError} listing missing names, unexpected names, and names with a different shape. */
function checkTensors(file: SafetensorsReader, matched: ReadonlyMap<Tensor, string>, of: string): void {
  const known = new Set(matched.values());
  const describing = (text: string) => ({ describe: () => text });
  const present = [...matched].filter(([, name]) => file.has(name));
  const different: Differences["different"] = present
    .filter(([target, name]) => !sameShape(file.info(name).shape, target.shape))
    .map(([target, name]) => ({
      name,
      got: describing(`${file.info(name).dtype}${formatShape(file.info(name).shape)}`),
      expected: describing(formatShape(target.shape)),
    }));
  const missing = [...known].filter((name) => !file.has(name));
  const unexpected = file.names.filter((name) => !known.has(name));
  if (missing.length + unexpected.length + different.length > 0 || known.size === 0)
    throw new StateDictError("loadLora", of, { missing, unexpected, different });
}

/**
 * Reorders rows of queries and keys, [heads · headWidth, rank], for a model from a GGUF file of `llama`. Such files
 * interleave the two halves of each head, as llama.cpp's rotation expects. Rows of other models are returned unchanged.
 *
 * Source: `permute` in llama.cpp's convert_hf_to_gguf.py.
 */
function inOrder(model: AdaptableModel, path: string, rows: Tensor, order: "huggingFace" | "llamaCpp"): Tensor {
  const [, layer, name] = /^blocks\.(\d+)\.attention\.(query|key)$/.exec(path) ?? [];
  if (layer === undefined || !(model instanceof Decoder)) return rows;
  const { attention } = model.description.layers[Number(layer)];
  if (attention.rope?.interleaved !== true) return rows;
  const { heads, keyValueHeads, headWidth } = attention;
  const halves = order === "huggingFace" ? [headWidth / 2, 2] : [2, headWidth / 2];
  const parts = reshape(rows, [name === "query" ? heads : keyValueHeads, ...halves, rows.shape[1]]);
  return reshape(transpose(parts, 1, 2), [...rows.shape]);
}

interface AdapterConfig {
  readonly rank: number;
  readonly alpha: number;
  readonly dropout: number;
  readonly scale: number;
  readonly baseModel: string | undefined;
}

function readConfig(path: string): AdapterConfig {
  const content = withFileErrors("loadLora", path, () => readFileSync(path, "utf8"));
  const fail = (message: string) => new FileFormatError("loadLora", "invalidConfig", path, message);
  const json = parseJson(content, (_, message) => fail(`expected JSON: ${message}`));
  if (!isJsonObject(json)) throw fail("expected a JSON object");
  const settings = new Settings(path, new Map(Object.entries(json)), "", "loadLora");
  const supported: Readonly<Record<string, readonly unknown[]>> = {
    peft_type: ["LORA"],
    bias: ["none", undefined],
    use_dora: [false, undefined],
    modules_to_save: [undefined],
    layer_replication: [undefined],
    lora_bias: [false, undefined],
    target_parameters: [undefined],
    trainable_token_indices: [undefined],
    alora_invocation_tokens: [undefined],
  };
  for (const [name, values] of Object.entries(supported)) {
    const got = settings.get(name);
    if (!values.includes(got)) throw unsupported(path, name, values, got);
  }
  for (const name of ["rank_pattern", "alpha_pattern"]) {
    const got = settings.get(name);
    if (got !== undefined && Object.keys(got as object).length > 0) throw unsupported(path, name, [{}], got);
  }
  const [rank, alpha] = [settings.whole("r"), settings.positive("lora_alpha")];
  const scale = alpha / (settings.flag("use_rslora", false) ? Math.sqrt(rank) : rank);
  const dropout = settings.get("lora_dropout") === 0 ? 0 : (settings.positiveIfAny("lora_dropout") ?? 0);
  if (dropout >= 1) throw settings.wrong("lora_dropout", "a probability below 1", dropout);
  const baseModel = settings.textIfAny("base_model_name_or_path");
  return { rank, alpha: scale * rank, dropout, scale, baseModel };
}

const unsupported = (path: string, name: string, values: readonly unknown[], got: unknown): ArgumentError =>
  new ArgumentError(
    "loadLora",
    "unsupportedConfig",
    `${path}: expected ${name} to be ${JSON.stringify(values[0] ?? null)}, the only supported value, got ` +
      JSON.stringify(got),
  );
