/**
 * Every key of a `config.json`, compared with `transformers`: after a change of any key, the logits are those of
 * `transformers`, or an error names the key. See configs.py and rows.py in scripts/fixtures/models.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OrchardError } from "../../../../src/core/errors.ts";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, noGrad, type Tensor } from "../../../../src/index.ts";
import { type ArchitectureName, rowOf } from "../../../../src/nn/models/loading/architectures.ts";
import { quantizationKeys, withoutEffect } from "../../../../src/nn/models/loading/config_fields.ts";
import { fieldsOf } from "../../../../src/nn/models/loading/fields.ts";
import { describeConfig } from "../../../../src/nn/models/loading/hugging_face.ts";
import { Random } from "../../../ops/samples.ts";
import { testFolder } from "../../../support/folder.ts";
import { usually } from "../../../support/repeats.ts";
import { seed } from "../../../support/some.ts";
import { errorOf, writeHashed } from "./oracle.ts";

type Shapes = Readonly<Record<string, number[]>>;
interface Case {
  readonly change: Readonly<Record<string, unknown>>;
  /** A key that the config lacks. */
  readonly missing?: string;
  /** The name of a tensor, `"same"` if the change has no effect, or null if `transformers` fails. */
  readonly logits: string | null;
  /** Shapes of the checkpoint that differ; null for a tensor that it lacks. */
  readonly shapes?: Readonly<Record<string, number[] | null>>;
}
interface Family {
  readonly fields: Readonly<Record<string, { readonly default: unknown; readonly type: string }>>;
  readonly theta: number | { readonly global: number; readonly local: number } | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: Shapes;
  readonly cases: readonly Case[];
}

const fixtures = ["configs", "rows"].map((name) => join(packageRoot, "test", "fixtures", "decoders", name));
const families: Record<ArchitectureName, Family> = Object.assign(
  {},
  ...fixtures.map((path) => JSON.parse(readFileSync(`${path}.json`, "utf8")).families),
);
const answers: nn.StateDict = Object.assign({}, ...fixtures.map((path) => io.loadSafetensors(`${path}.safetensors`)));
const folder = testFolder("configs");
const random = new Random(seed);
const names = Object.keys(families) as ArchitectureName[];

/** The last logits of a model, or the error of loading or computing it. */
async function outcomeOf(path: string): Promise<Tensor | Error> {
  try {
    const { model } = await nn.loadModel(path, { dtype: "float32" });
    const logits = noGrad(() => model.forward(answers["tokens"]));
    return logits.narrow(1, -2, 2);
  } catch (error) {
    return error as Error;
  }
}

/** Fields of config classes whose other values are rejected, though `transformers` accepts them. */
const refusedFields: Readonly<Record<string, readonly string[]>> = {
  gpt2: ["add_cross_attention"],
  gemma: ["use_bidirectional_attention"],
  gemma2: ["use_bidirectional_attention"],
  phi: ["tie_word_embeddings"],
  falcon: ["alibi"],
  deepseek_v2: ["mlp_bias"],
  opt: ["do_layer_norm_before", "_remove_final_layer_norm", "word_embed_proj_dim"],
  bloom: ["apply_residual_connection_post_layernorm", "slow_but_exact"],
  mamba2: ["hidden_act", "rescale_prenorm_residual"],
  qwen3_next: ["hidden_act"],
  qwen3_5_text: ["hidden_act"],
  qwen3_5_moe_text: ["hidden_act"],
  granitemoehybrid: ["hidden_act"],
  bamba: ["hidden_act"],
  falcon_mamba: ["hidden_act", "rescale_prenorm_residual"],
  // its class ignores this key of older files
  mellum: ["rope_scaling"],
  // other norms than the sum of the probabilities are not supported
  dbrx: ["ffn_config"],
  falcon_h1: ["hidden_act"],
  kimi_linear: ["hidden_act"],
  hy_v3: ["mlp_bias"],
  nemotron_h: ["mamba_hidden_act", "moe_latent_size"],
  mamba: ["hidden_act", "rescale_prenorm_residual"],
  glm_moe_dsa: ["mlp_bias"],
  deepseek_v32: ["mlp_bias"],
  jamba: ["hidden_act"],
  // with groups of unequal sizes, transformers mixes a token's experts with other tokens'
  exaone_moe: ["num_experts"],
  gptj: ["tie_word_embeddings"],
  codegen: ["tie_word_embeddings"],
  ernie4_5_moe: ["use_bias"],
  mpt: ["attn_config", "logit_scale", "no_bias", "norm_type"],
};

/** Keys without an effect that are read in some architectures. */
const readKeys: Readonly<Record<string, readonly string[]>> = {
  mpt: ["max_seq_len"],
  dbrx: ["max_seq_len"],
  phimoe: ["router_jitter_noise"],
  kimi_linear: ["model_max_length"],
};

/** Whether a change is rejected for an accepted reason. */
function isExpected(name: ArchitectureName, key: string, value: unknown): boolean {
  if (!(key in families[name].fields) && !["rope_scaling", "rope_theta"].includes(key)) return true;
  if (key === "is_encoder_decoder" || refusedFields[name]?.includes(key)) return true;
  if (!key.startsWith("rope_")) return false;
  // a type that is unsupported, or that is Qwen's for images; a rotation in a model without any, such as GPT-2; or one
  // setting for all layers of a model with two kinds, such as Gemma 3
  const text = JSON.stringify(value);
  const isFlat = !text.includes("_attention") && rowOf(name).localBase !== undefined && key === "rope_parameters";
  // Youtu scales half of the elements; DeepSeek-V3, whose attention it shares, does not
  if (name === "youtu" && text.includes("partial_rotary_factor")) return true;
  return text.includes("proportional") || text.includes("mrope_section") || families[name].theta === null || isFlat;
}

/**
 * `transformers` broadcasts angles over an odd part of a head, or factors over a different number of pairs. Neither is
 * meaningful.
 */
const isBroadcast = ({ message }: Error): boolean =>
  message.includes("expected an even number of elements") || message.includes("one for each pair of elements");

/** Keys that the fixtures do not vary, because `transformers` runs other programs or fails if their values differ. */
const unlike = ["model_type", "auto_map", "custom_pipelines", "use_return_dict", "return_dict", "attn_implementation"];

/**
 * Attributes of `transformers` 4 that no model of version 5 reads, so the fixtures do not vary them: see
 * older_configs.test.ts.
 */
const ofOlderVersions = [
  "xla_device",
  "tf_legacy_loss",
  "loss_type",
  "use_reentrant_checkpointing",
  "penalty_alpha",
  "renormalize_logits",
  "guidance_scale",
  "low_memory",
  "constraints",
  "min_p",
  "max_time",
  "sequence_bias",
  "forced_decoder_ids",
  "output_logits",
  "watermarking_config",
];

/** Notes of published files: see published_keys.test.ts. */
const published = [
  "name",
  "use_memory_efficient_attention",
  "unpad_inputs",
  "matryoshka_dimensions",
  "add_pooling_layer",
];

test("each family's last case has every key without effect on results", () => {
  const others = new Set([...unlike, ...ofOlderVersions, ...published, ...quantizationKeys, "experts_implementation"]);
  for (const [name, { cases }] of Object.entries(families)) {
    const { change, logits } = cases.at(-1)!;
    const isVaried = (key: string) => key in change || others.has(key) || readKeys[name]?.includes(key);
    expect([...withoutEffect].filter((key) => !isVaried(key))).toEqual([]);
    expect(logits).toBe("same");
  }
});

/** Whether a case's checkpoint has millions of elements, because its config lacks a size whose default is large. */
const isLarge = ({ shapes = {} }: Case): boolean =>
  Object.values(shapes).some((shape) => (shape ?? []).reduce((product, size) => product * size, 1) > 2 ** 20);

describe.each(names)("the defaults in configs of %s", (name) => {
  const { config, shapes, cases, fields, theta } = families[name];
  const isFromOne = rowOf(name).normsFromOne === true;
  // Families share most keys: usually every third case of each, and the last one, which has many keys. Defaults of
  // sizes are compared below without a model of that size.
  const turn = names.indexOf(name) % 3;
  const some = usually(cases, (each, at) => (at % 3 === turn || at === cases.length - 1) && !isLarge(each));

  test("the defaults equal those of the config class", () => {
    const own = fieldsOf[name];
    const differing = Object.entries(fields).filter(
      ([key, { default: value }]) => Object.hasOwn(own, key) && own[key] !== value,
    );
    expect(differing).toEqual([]);
    const bases = typeof theta === "number" ? { global: theta, local: undefined } : theta;
    expect<unknown>([own[rowOf(name).baseField ?? "rope_theta"], own["rope_local_base_freq"]]).toEqual([
      bases?.global,
      bases?.local,
    ]);
  });

  test("missing fields have the defaults", () => {
    const given = Object.entries(fields).filter(([key]) => Object.hasOwn(fieldsOf[name], key));
    const explicit = given.map(([key, { default: value }]) => [key, value] as const);
    const wanted = describeConfig("test", name, Object.fromEntries(explicit));
    expect(describeConfig("test", name, {})).toEqual(wanted);
    for (let turn = 0; turn < 20; turn++) {
      const some = explicit.filter(() => random.integer(0, 1) === 1);
      expect(describeConfig("test", name, Object.fromEntries(some))).toEqual(wanted);
    }
  });

  test("the error for an unknown key names it", () => {
    for (let turn = 0; turn < 20; turn++) {
      const key = Array.from({ length: 8 }, () => String.fromCharCode(random.integer(97, 122))).join("");
      const value = [true, 0.5, "x", [1], { a: 1 }][turn % 5];
      expect(() => describeConfig("test", name, { [key]: value })).toThrow(`${key} is not a setting of`);
      expect(describeConfig("test", name, { [key]: null, [`_${key}`]: value })).toEqual(
        describeConfig("test", name, {}),
      );
    }
  });

  test("each changed key has the result of transformers, or an error that names the key", async () => {
    const path = folder.file(name);
    mkdirSync(path);
    const wrong: string[] = [];
    let written: Case["shapes"] | null = null;
    for (const { change, missing, logits, shapes: own } of some) {
      const changed = Object.entries({ ...config, ...change }).filter(([key]) => key !== missing);
      writeFileSync(join(path, "config.json"), JSON.stringify(Object.fromEntries(changed)));
      if (own !== written) await writeHashed(path, { ...shapes, ...own }, isFromOne);
      written = own;
      const got = await outcomeOf(path);
      const key = missing ?? Object.keys(change)[0];
      const where = missing === undefined ? JSON.stringify(change) : `without ${missing}`;
      if (got instanceof Error) {
        if (!(got instanceof OrchardError)) wrong.push(`${where}: ${got.stack}`);
        else if (!got.message.includes(key)) wrong.push(`${where}: an error that does not name it: ${got.message}`);
        else if (logits !== null && !isExpected(name, key, change[key]) && !isBroadcast(got))
          wrong.push(`${where}: ${got.message}`);
        continue;
      }
      if (logits === null) wrong.push(`${where}: transformers refuses it`);
      else {
        const error = errorOf(got, answers[logits === "same" ? name : logits]);
        if (!(error < 1e-5)) wrong.push(`${where}: off by ${error}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});
