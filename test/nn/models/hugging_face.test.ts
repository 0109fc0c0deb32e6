/**
 * Models of Hugging Face's `transformers`, loaded by their original names: logits and gradients for a batch equal those
 * of `transformers` in float32, within FlashAttention's bound. See scripts/fixtures/models/make.py.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import {
  ArgumentError,
  crossEntropy,
  FileError,
  FileFormatError,
  io,
  nn,
  type Tensor,
  toDType,
  withBackend,
  zeros,
} from "../../../src/index.ts";
import { epsilon } from "../../ops/tolerance.ts";
import { testFolder } from "../../support/folder.ts";

const kinds = { gpt2: nn.GPT, llama: nn.Llama } as const;
type Kind = keyof typeof kinds;
const names = ["gpt2", "llama"] as const satisfies readonly Kind[];

const folderOf = (kind: Kind): string => join(packageRoot, "test", "fixtures", "models", kind);
const configOf = (kind: Kind) => JSON.parse(readFileSync(join(folderOf(kind), "config.json"), "utf8"));
const weightsOf = (kind: Kind): nn.StateDict => io.loadSafetensors(join(folderOf(kind), "model.safetensors"));
const answersOf = (kind: Kind): nn.StateDict => io.loadSafetensors(join(folderOf(kind), "answers.safetensors"));

/** Logits, the loss, and every gradient by Hugging Face's names. */
function compute(kind: Kind, dtype: "float32" | "float64"): Map<string, Tensor> {
  const model = kinds[kind].fromPretrained(folderOf(kind), { dtype }).eval();
  const tokens = answersOf(kind)["tokens"];
  const count = tokens.shape[1] - 1;
  const logits = model.forward(tokens.narrow(1, 0, count));
  const loss = crossEntropy(logits, tokens.narrow(1, 1, count), { dim: 2 });
  loss.backward();
  const parameters = model.namedParameters();
  const gradients = model
    .huggingFaceMappings()
    .map(({ names, parameter, view = (x: Tensor) => x }) => [
      `gradient.${names[0]}`,
      view(parameters.get(parameter)!.grad!),
    ]);
  return new Map<string, Tensor>([["logits", logits], ["loss", loss], ...(gradients as [string, Tensor][])]);
}

/** The largest difference from the oracle, relative to its largest number. */
function errorOf(got: readonly number[], want: readonly number[]): number {
  if (got.length !== want.length) return Infinity;
  const largest = (values: readonly number[]) => Math.max(...values.map(Math.abs));
  return largest(want.map((value, at) => value - got[at])) / largest(want);
}

const numbers = (x: Tensor): number[] => Array.from(toDType(x, "float64").dataSync());

describe.each(names)("models of Hugging Face: %s", (kind) => {
  const oracle = withBackend("reference", () => compute(kind, "float64"));
  const { tokens: _, ...answers } = answersOf(kind);

  test("every tensor of the result is compared", () => {
    expect([...oracle.keys()].sort()).toEqual(Object.keys(answers).sort());
    expect(oracle.size).toBeGreaterThan(20);
  });

  test("float64 results are within 1e-5 of the float32 results of transformers", () => {
    const far = [...oracle].filter(([name, got]) => !(errorOf(numbers(answers[name]), numbers(got)) < 1e-5));
    expect(far.map(([name]) => name)).toEqual([]);
  });

  // transformers is the baseline of FlashAttention's rule. Its error in a tensor of a few numbers may be small by
  // chance, so the limits use its largest errors relative to a tensor's maximum: one over all results and one over all
  // gradients.
  test.each(["cpu", "reference"] as const)(
    "float32 results on %s are at most 2 and 3 times as far off as transformers",
    (backend) => {
      const got = withBackend(backend, () => compute(kind, "float32"));
      const isGradient = (name: string) => name.startsWith("gradient.");
      for (const [factor, names] of [
        [2, [...oracle.keys()].filter((name) => !isGradient(name))],
        [3, [...oracle.keys()].filter(isGradient)],
      ] as const) {
        const errorsOf = (values: (name: string) => Tensor) =>
          names.map((name) => errorOf(numbers(values(name)), numbers(oracle.get(name)!)));
        const allowed = factor * Math.max(...errorsOf((name) => answers[name])) + epsilon.float32!;
        const errors = errorsOf((name) => got.get(name)!);
        expect(names.filter((_, at) => !(errors[at] <= allowed))).toEqual([]);
        expect(allowed).toBeLessThan(1e-5);
      }
    },
  );

  test("older names are accepted: without a prefix, with masks and a tied head", () => {
    const state = weightsOf(kind);
    const wanted = kinds[kind].fromHuggingFace(configOf(kind), state).parameters();
    const unprefixed = Object.entries(state).map(
      ([name, x]) => [name.replace(/^(transformer|model)\./, ""), x] as const,
    );
    const older = {
      ...Object.fromEntries(unprefixed),
      "h.0.attn.bias": zeros([1, 1, 8, 8]),
      "h.1.attn.masked_bias": zeros([]),
      "model.layers.0.self_attn.rotary_emb.inv_freq": zeros([4]),
      ...(kind === "gpt2" ? { "lm_head.weight": state["transformer.wte.weight"] } : {}),
    };
    const got = kinds[kind].fromHuggingFace(configOf(kind), older).parameters();
    expect(got.map((x) => x.toArray())).toEqual(wanted.map((x) => x.toArray()));
  });

  test("huggingFaceState() returns the loaded tensors, and its saved file can be loaded", async () => {
    const model = kinds[kind].fromPretrained(folderOf(kind), { dtype: "float16" });
    const state = weightsOf(kind);
    const back = model.huggingFaceState();
    const values = (some: Readonly<nn.StateDict>) =>
      Object.fromEntries(Object.entries(some).map(([name, x]) => [name, [x.dtype, x.toArray()]]));
    expect(values(back)).toEqual(values(state));
    const { path: folder } = testFolder("pretrained");
    writeFileSync(join(folder, "config.json"), JSON.stringify(configOf(kind)));
    await io.saveSafetensors(join(folder, "model.safetensors"), back);
    const again = kinds[kind].fromPretrained(folder, { dtype: "bfloat16" });
    expect(again.parameters().every(({ dtype }) => dtype === "bfloat16")).toBe(true);
  });

  test("mismatches are listed by Hugging Face's names, and nothing is loaded", () => {
    const model = kinds[kind].fromHuggingFace(configOf(kind), weightsOf(kind));
    const before = model.parameters().map((x) => x.toArray());
    const { [Object.keys(weightsOf(kind))[3]]: lost, ...state } = weightsOf(kind);
    const load = () => model.loadHuggingFace({ ...state, stray: lost });
    expect(load).toThrow(nn.StateDictError);
    expect(load).toThrow(
      expect.objectContaining({ missing: [Object.keys(weightsOf(kind))[3]], unexpected: ["stray"], different: [] }),
    );
    expect(model.parameters().map((x) => x.toArray())).toEqual(before);
  });
});

describe("configs of GPT and Llama", () => {
  const gpt2 = configOf("gpt2");
  const llama = configOf("llama");

  test("Llama's rotary settings of both versions of transformers are the same", () => {
    const { rope_parameters, ...rest } = llama;
    const { rope_theta, ...rope_scaling } = rope_parameters;
    const logits = (config: nn.LlamaConfig) =>
      nn.Llama.fromHuggingFace(config, weightsOf("llama")).forward(answersOf("llama")["tokens"]).toArray();
    expect(logits({ ...rest, rope_theta, rope_scaling })).toEqual(logits(llama));
    expect(logits({ ...rest, rope_theta })).not.toEqual(logits(llama));
  });

  test("GPT-2's dropout probabilities are kept apart", () => {
    const model = nn.GPT.fromHuggingFace({ ...gpt2, attn_pdrop: 0.3, resid_pdrop: 0.2 }, weightsOf("gpt2"));
    const [block] = model.blocks;
    expect([model.dropout.p, block.attention.dropout, block.dropout.p]).toEqual([0.1, 0.3, 0.2]);
  });

  test.each<readonly [string, string, () => unknown]>([
    ["another architecture", "otherModel", () => nn.GPT.fromHuggingFace(llama, {})],
    ["a size that is none", "invalidConfig", () => nn.Llama.fromHuggingFace({ ...llama, hidden_size: 0 }, {})],
    [
      "a setting of another model",
      "unsupportedConfig",
      () => nn.Llama.fromHuggingFace({ ...llama, attention_multiplier: 0.1 } as nn.LlamaConfig, {}),
    ],
    ["an activation", "unknownActivation", () => nn.GPT.fromHuggingFace({ ...gpt2, activation_function: "mish" }, {})],
    ["relu", "unsupportedConfig", () => nn.GPT.fromHuggingFace({ ...gpt2, activation_function: "relu" }, {})],
    [
      "scores that are scaled by layer",
      "unsupportedConfig",
      () => nn.GPT.fromHuggingFace({ ...gpt2, scale_attn_by_inverse_layer_idx: true }, {}),
    ],
    [
      "a way to stretch positions",
      "unknownScaling",
      () => nn.Llama.fromHuggingFace({ ...llama, rope_parameters: { rope_type: "dynamic", factor: 2 } }, {}),
    ],
  ])("the constructors reject configs with %s", (_, code, make) => {
    expect(make).toThrow(ArgumentError);
    expect(make).toThrow(expect.objectContaining({ code }));
  });

  test("the error for missing and damaged files names them", () => {
    const { path: folder } = testFolder("pretrained");
    expect(() => nn.GPT.fromPretrained(join(folder, "nowhere"))).toThrow(FileError);
    const copy = join(folder, "copy");
    mkdirSync(copy);
    writeFileSync(join(copy, "model.safetensors"), readFileSync(join(folderOf("gpt2"), "model.safetensors")));
    expect(() => nn.GPT.fromPretrained(copy)).toThrow(expect.objectContaining({ code: "notFound" }));
    writeFileSync(join(copy, "config.json"), "{");
    expect(() => nn.GPT.fromPretrained(copy)).toThrow(FileFormatError);
    expect(() => nn.GPT.fromPretrained(copy)).toThrow("config.json");
  });
});
