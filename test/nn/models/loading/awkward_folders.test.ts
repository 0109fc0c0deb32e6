/**
 * Loads folders as people's programs write them: with wrappers in the names of tensors, shards without an index, other
 * dtypes, buffers, tied weights stored twice or under the head's name, and older or incomplete configs. Each model must
 * compute what it computes from its usual folder, bit for bit.
 */
import { describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { Generator, io, nn, noGrad, randint, type Tensor, tensor, zeros } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { repeats } from "../../../support/repeats.ts";
import { cases as speechCases, writeCtcModel } from "../../speech/ctc_oracle.ts";
import * as encoders from "../encoder/oracle.ts";
import * as encoderDecoders from "../encoder_decoder/oracle.ts";
import * as vision from "../vision/oracle.ts";
import { weight } from "../weights.ts";
import { decoders, folderOf } from "./oracle.ts";

type Weights = Record<string, Tensor>;
type Config = Record<string, unknown>;

/** A folder before it is changed. */
interface Usual {
  readonly title: string;
  readonly write: (path: string) => unknown;
  readonly result: (model: never) => Tensor;
  /** Pairs of names of tensors that are the same weight, of which the file has the first. */
  readonly tied?: readonly (readonly [string, string])[];
}

const folder = testFolder("awkward");
const tokens = tensor([[1, 2, 3, 4, 5, 6]], { dtype: "int32" });

interface Dense {
  readonly name: string;
  readonly config: Config;
  readonly image: readonly [number, number];
  readonly shapes: Readonly<Record<string, number[]>>;
}

const { cases: denseCases }: { cases: readonly Dense[] } = JSON.parse(
  readFileSync(join(packageRoot, "test", "fixtures", "vision", "dense.json"), "utf8"),
);

/** A weight of these models, with a positive variance. */
function filled(key: string, shape: readonly number[]): Tensor {
  if (key.endsWith("num_batches_tracked")) return zeros([], { dtype: "int64" });
  const value = weight(key, shape);
  return key.endsWith("running_var") ? (value.add(1) as Tensor) : value;
}

const usual: readonly Usual[] = [
  ...decoders.map(
    (name): Usual => ({
      title: name,
      write: (path) => cpSync(folderOf(name), path, { recursive: true }),
      result: (model: nn.LanguageModel) => model.forward(tokens),
      tied:
        name === "gpt2"
          ? [["transformer.wte.weight", "lm_head.weight"]]
          : name.startsWith("gemma")
            ? [["model.embed_tokens.weight", "lm_head.weight"]]
            : [],
    }),
  ),
  ...encoders.names.flatMap((name): Usual[] =>
    (["none", "classify", "fillMask"] as const).flatMap((task) =>
      encoders.families[name].classes[task] === undefined
        ? []
        : [
            {
              title: `${name} ${task}`,
              write: (path) => encoders.writeModel(path, name, { task, change: {}, output: null }),
              result: (model: nn.Encoder) => model.forward(tokens),
              tied: tiedIn(encoders.families[name].shapes[task] ?? {}),
            },
          ],
    ),
  ),
  ...vision.cases
    .filter(([name]) => !/^(clip|siglip2?)\./.test(name))
    .map(
      ([name, own]): Usual => ({
        title: `${name} ${own.config.architectures[0]}`,
        write: (path) => vision.writeModel(path, name, own),
        result: (model: nn.VisionEncoder | nn.ObjectDetector) => {
          const found = model.forward(weight("pixels", [1, 3, ...own.image]));
          return "boxes" in found ? found.boxes : found;
        },
      }),
    ),
  ...encoderDecoders.models.slice(0, 16).map(
    (own, at): Usual => ({
      title: `${own.config["model_type"]} ${at}`,
      write: (path) => encoderDecoders.writeModel(path, own),
      result: (model: nn.EncoderDecoder) => model.forward(tokens, tokens),
    }),
  ),
  ...speechCases.slice(0, 24).map(
    (own, at): Usual => ({
      title: `${own.config.model_type} ${at}`,
      write: (path) => writeCtcModel(path, own),
      result: (model: nn.Wav2Vec2) => model.forward(weight("samples", [1, 1000])),
    }),
  ),
  ...denseCases.map(
    ({ name, config, image, shapes }, at): Usual => ({
      title: `${name} ${at}`,
      async write(path) {
        writeFileSync(join(path, "config.json"), JSON.stringify(config));
        const tensors = Object.entries(shapes).map(([key, shape]) => [key, filled(key, shape)] as const);
        await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
      },
      result(model: nn.ImageClassifier | nn.Detr) {
        const found = model.forward(weight("pixels", [1, 3, ...image]));
        return "boxes" in found ? found.boxes : found;
      },
    }),
  ),
];

/** Returns the embedding and the head of masked words, which are the same weight. */
function tiedIn(shapes: Readonly<Record<string, unknown>>): [string, string][] {
  const embedding = Object.keys(shapes).find((name) => /(word|tok)_embeddings\.weight$/.test(name));
  const head = Object.keys(shapes).some((name) => name.startsWith("lm_head.")) ? "lm_head.decoder.weight" : undefined;
  return embedding !== undefined && head !== undefined ? [[embedding, head]] : [];
}

/** Draws whole numbers below a limit. */
class Draws {
  readonly #generator: Generator;
  constructor(seed: number) {
    this.#generator = new Generator(seed);
  }
  below(limit: number): number {
    return Number(randint(0, limit, [1], { generator: this.#generator }).item());
  }
  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}

const renamed = (weights: Weights, name: (key: string) => string): Weights =>
  Object.fromEntries(Object.entries(weights).map(([key, value]) => [name(key), value]));

/** Changes of the tensors, in this order. */
const changes: Readonly<Record<string, (weights: Weights, draws: Draws, own: Usual) => Weights>> = {
  buffers: (weights, draws) => ({
    ...weights,
    [draws.one(["position_ids", "embeddings.position_ids", "bert.embeddings.token_type_ids"])]: tensor([[0, 1]], {
      dtype: "int64",
    }),
    [draws.one(["model.rotary_emb.inv_freq", "layers.0.self_attn.rotary_emb.cos_cached", "norm.total_ops"])]: tensor([
      1, 0.5,
    ]),
  }),
  "tied twice": (weights, _, { tied = [] }) => ({
    ...weights,
    ...Object.fromEntries(tied.flatMap(([from, to]) => (weights[from] ? [[to, weights[from].clone()]] : []))),
  }),
  "tied under the head's name": (weights, _, { tied = [] }) =>
    renamed(weights, (key) => tied.find(([from]) => from === key)?.[1] ?? key),
  wrapped: (weights, draws) => {
    const prefix = draws.one(["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."]);
    return renamed(weights, (key) => prefix + key);
  },
  "wrapped inside": (weights, draws) => {
    const wrapper = draws.one(["_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"]);
    return renamed(weights, (key) => key.replace(/\.(\d+)\./, `.$1.${wrapper}.`));
  },
  prefixed: (weights, draws) => {
    const prefix = draws.one(["model.", "net.", "base.model."]);
    return renamed(weights, (key) => prefix + key);
  },
};

/** Changes of the config. */
const configChanges: Readonly<Record<string, (config: Config, draws: Draws) => Config>> = {
  "notes of versions": (config, draws) => ({
    ...config,
    ...draws.one([
      { torch_dtype: "float32", transformers_version: "4.21.0.dev0" },
      { dtype: "bfloat16", _name_or_path: "/home/user/run-3" },
      { torch_dtype: null, _commit_hash: null },
    ]),
  }),
  "other order": (config) => Object.fromEntries(Object.entries(config).toReversed()),
};

/** Writes the tensors in one file or several. */
async function store(path: string, weights: Weights, draws: Draws): Promise<string> {
  const dtype = draws.one(["float32", "float32", "float16", "bfloat16", "float64", "mixed"] as const);
  const own = () => (dtype === "mixed" ? draws.one(["float32", "float16", "bfloat16"] as const) : dtype);
  const cast = Object.fromEntries(
    Object.entries(weights).map(([key, x]) => [key, x.dtype === "int64" ? x : x.to(own())]),
  );
  const kind = draws.one(["one", "another name", "shards", "shards with an index"]);
  if (kind === "one" || kind === "another name") {
    const name = kind === "one" ? "model" : draws.one(["pytorch_model", "model.fp16", "weights"]);
    await io.saveSafetensors(join(path, `${name}.safetensors`), cast);
    return `${dtype}, ${name}`;
  }
  const count = 2 + draws.below(3);
  const names = Array.from({ length: count }, (_, at) => `model-0000${at + 1}-of-0000${count}.safetensors`);
  const shards: Weights[] = names.map(() => ({}));
  for (const [key, x] of Object.entries(cast)) draws.one(shards)[key] = x;
  for (const [at, name] of names.entries()) await io.saveSafetensors(join(path, name), shards[at]!);
  const map = Object.fromEntries(names.flatMap((name, at) => Object.keys(shards[at]!).map((key) => [key, name])));
  if (kind !== "shards")
    writeFileSync(join(path, "model.safetensors.index.json"), JSON.stringify({ metadata: {}, weight_map: map }));
  return `${dtype}, ${kind}`;
}

async function outputOf(path: string, own: Usual): Promise<number[]> {
  const { model } = await nn.loadModel<never>(path, { dtype: "float32" });
  return Array.from(noGrad(() => own.result(model)).dataSync(), Number);
}

/** Rounds weights so that every dtype has their values. */
const rounded = (x: Tensor): Tensor =>
  x.dtype === "int64" ? x : x.to("float32").mul(64).round().clamp(-128, 128).div(64);

describe.each(usual.map((own, at) => [own.title, own, at] as const))("awkward folders of %s", (_, own, at) => {
  test("give the results of the usual folder", async () => {
    const path = folder.file(`usual${at}`);
    mkdirSync(path, { recursive: true });
    await own.write(path);
    for (const name of readdirSync(path))
      if (/^(answers|adapter)/.test(name)) rmSync(join(path, name), { recursive: true });
    const file = join(path, "model.safetensors");
    const given = Object.fromEntries(Object.entries(io.loadSafetensors(file)).map(([key, x]) => [key, rounded(x)]));
    rmSync(file);
    await io.saveSafetensors(file, given);
    const want = await outputOf(path, own);
    for (let draw = 0; draw < repeats({ usual: 2, all: 8 }); draw++) {
      const draws = new Draws(1000 * at + draw);
      const awkward = folder.file(`awkward${at}.${draw}`);
      cpSync(path, awkward, { recursive: true });
      rmSync(join(awkward, "model.safetensors"));
      const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8"));
      const drawn = Object.keys(changes).filter(() => draws.below(3) === 0);
      const drawnConfig = Object.keys(configChanges).filter(() => draws.below(2) === 0);
      const weights = drawn.reduce((found, name) => changes[name]!(found, draws, own), given);
      writeFileSync(
        join(awkward, "config.json"),
        JSON.stringify(drawnConfig.reduce((found, name) => configChanges[name]!(found, draws), config)),
      );
      const how = [...drawn, ...drawnConfig, await store(awkward, weights, draws)].join(", ");
      const got = await outputOf(awkward, own).catch((error: Error) => `${error.message}`);
      expect({ how, got }).toEqual({ how, got: want });
      rmSync(awkward, { recursive: true });
    }
    rmSync(path, { recursive: true });
  });
});

describe("folders whose weights are ambiguous or incomplete are rejected:", () => {
  const x = { x: tensor([1, 2]) };
  test.each([
    [["model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"], "it lacks model-00002-of-00003"],
    [["model-00001-of-00001.safetensors", "other-00001-of-00001.safetensors"], "it has shards of several models"],
    [
      ["a.safetensors", "b.safetensors"],
      "expected the folder to have model.safetensors or model.safetensors.index.json",
    ],
    [["adapter_model.safetensors"], "expected the folder to have model.safetensors or model.safetensors.index.json"],
  ])("%p", async (names, message) => {
    const path = folder.file(names.join());
    mkdirSync(path);
    for (const name of names) await io.saveSafetensors(join(path, name), x);
    expect(() => io.openSafetensors(path)).toThrow(message);
  });

  test("shards without an index are read under their names", async () => {
    const path = folder.file("shards");
    mkdirSync(path);
    await io.saveSafetensors(join(path, "model-00001-of-00002.safetensors"), { a: tensor([1]) });
    await io.saveSafetensors(join(path, "model-00002-of-00002.safetensors"), { b: tensor([2]) });
    using file = io.openSafetensors(path);
    expect(file.names).toEqual(["a", "b"]);
    expect(file.tensor("b").item()).toBe(2);
    expect(`${file}`).toContain("2 tensors in 2 files");
  });
});
