/** The pipeline: pictures of `diffusers` from a small folder with the same noise, its tokenizer, and errors. */
import { beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadPromptTokenizer } from "../../src/diffusion/clip_tokenizer.ts";
import { autoencoderOptions, textEncoderOptions, unetOptions } from "../../src/diffusion/configs.ts";
import { diffusion, io, type Tensor, withBackend } from "../../src/index.ts";
import { Settings } from "../../src/nn/models/loading/settings.ts";
import { compiler, setCompiler } from "../../src/observe/compiler.ts";
import { weight } from "../nn/models/encoder/oracle.ts";
import { testFolder } from "../support/folder.ts";
import { fixture, readFixture, writePart } from "./oracle.ts";

interface Case {
  readonly kind: diffusion.SchedulerKind;
  readonly options: Readonly<Record<string, unknown>>;
  readonly prompt: string;
  readonly negativePrompt: string;
  readonly steps: number;
  readonly guidance: number;
  readonly width: number;
  readonly height: number;
}
const { configs, merges, index, prompts, cases } = readFixture<{
  configs: Readonly<Record<"unet" | "vae" | "text_encoder", Readonly<Record<string, unknown>>>>;
  merges: string[];
  index: Readonly<Record<string, unknown>>;
  prompts: { text: string; tokens: number[] }[];
  cases: Case[];
}>("pipeline.json");
const pictures = io.loadSafetensors(fixture("pictures.safetensors"));
const { path: folder } = testFolder("pipeline");

const settings = (config: object) => new Settings(undefined, new Map(Object.entries(config)));

/** The letters that stand for bytes in GPT-2's vocabulary. */
function byteLetters(): string[] {
  const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);
  const printed = [...range(33, 127), ...range(161, 173), ...range(174, 256)];
  return [...printed, ...range(256, 256 + 256 - printed.length)].map((code) => String.fromCodePoint(code));
}

function writeTokenizer(): void {
  const letters = byteLetters();
  const words = [
    ...letters,
    ...letters.map((letter) => `${letter}</w>`),
    ...merges.map((each) => each.replace(" ", "")),
  ];
  const vocab = [...words, "<|startoftext|>", "<|endoftext|>"].map((word, at) => [word, at]);
  mkdirSync(join(folder, "tokenizer"), { recursive: true });
  writeFileSync(join(folder, "tokenizer", "vocab.json"), JSON.stringify(Object.fromEntries(vocab)));
  writeFileSync(join(folder, "tokenizer", "merges.txt"), `#version: 0.2\n${merges.join("\n")}\n`);
}

const writeJson = (path: string, json: object) => writeFileSync(join(folder, path), JSON.stringify(json));
const writeScheduler = (options: object) => writeJson("scheduler/scheduler_config.json", options);

beforeAll(async () => {
  const models = {
    unet: new diffusion.UNet(unetOptions(settings(configs.unet))),
    vae: new diffusion.Autoencoder(autoencoderOptions(settings(configs.vae))),
    text_encoder: new diffusion.TextEncoder(textEncoderOptions(settings(configs.text_encoder))),
  };
  for (const part of ["unet", "vae", "text_encoder"] as const)
    await writePart(folder, part, { config: configs[part], model: models[part] });
  mkdirSync(join(folder, "scheduler"));
  writeTokenizer();
  writeJson("model_index.json", { _class_name: "StableDiffusionPipeline", ...index });
  writeScheduler(cases[0].options);
});

const distance = (a: Tensor, b: Tensor): number => Number(a.sub(b).abs().max().item());

describe("results match those of diffusers", () => {
  test.each(cases.map((each) => [each.kind, each] as const))(
    "a picture with %s matches diffusers",
    async (kind, each) => {
      const { options, kind: _, ...own } = each;
      writeScheduler(options);
      const pipeline = await diffusion.loadPipeline(folder);
      expect(pipeline.scheduler.kind).toBe(kind);
      const noise = weight(`${kind}.noise`, [1, 4, 12, 8]).mul(2);
      const picture = await pipeline.generate({ ...own, noise, dtype: "float32" });
      expect(distance(picture, pictures[kind])).toBeLessThan(1e-3);
      expect(Number(pictures[kind].std().item())).toBeGreaterThan(0.05);
    },
  );

  test("tokens of prompts match diffusers", () => {
    const { tokenizer, padding } = loadPromptTokenizer(join(folder, "tokenizer"));
    for (const { text, tokens } of prompts) {
      const got = tokenizer.encodeInputs("test", text, { maxTokens: 12 }).tokens;
      expect([...got, ...Array<number>(12 - got.length).fill(padding)]).toEqual(tokens);
    }
  });
});

describe("a pipeline draws pictures from texts", () => {
  const small = { prompt: "a ring", steps: 2, width: 8, height: 8 } as const;

  test("bytes are the rounded floats, and a seed draws the same picture again", async () => {
    writeScheduler(cases[0].options);
    const pipeline = await diffusion.loadPipeline(folder);
    const [bytes, floats] = [
      await pipeline.generate({ ...small, seed: 3 }),
      await pipeline.generate({ ...small, seed: 3, dtype: "float32" }),
    ];
    expect([bytes.dtype, bytes.shape.join()]).toEqual(["uint8", "3,8,8"]);
    expect(bytes.toArray()).toEqual(floats.mul(255).round().to("uint8").toArray());
    const other = await pipeline.generate({ ...small, seed: 4 });
    expect(other.toArray()).not.toEqual(bytes.toArray());
  });

  test("pictures are the same with and without a program of the steps", async () => {
    const pipeline = await diffusion.loadPipeline(folder);
    const made: { explain(): string }[] = [];
    const before = compiler()!;
    setCompiler((fn, state) => {
      const program = before(fn, state);
      made.push(program as never);
      return Object.assign(program, { reset: () => undefined });
    });
    try {
      for (const guidance of [1, 5]) {
        const options = { ...small, steps: 9, seed: 3, guidance, scheduler: "eulerAncestral" } as const;
        const [plain, compiled] = [
          await withBackend("cpu", () => pipeline.generate({ ...options, compile: false })),
          await withBackend("cpu", () => pipeline.generate(options)),
        ];
        expect(compiled.toArray()).toEqual(plain.toArray());
      }
      expect(made.map((program) => /(\d+) replays/.exec(program.explain())?.[1])).toEqual(["6", "6"]);
    } finally {
      setCompiler(before);
    }
  });

  test("every scheduler can replace the folder's, with its noise", async () => {
    const pipeline = await diffusion.loadPipeline(folder);
    const steps: diffusion.GenerationProgress[] = [];
    for (const kind of ["ddpm", "ddim", "euler", "eulerAncestral", "dpmSolver"] as const) {
      const onStep = (progress: diffusion.GenerationProgress) => void steps.push(progress);
      const picture = await pipeline.generate({ ...small, scheduler: kind, seed: 1, onStep });
      expect(picture.shape).toEqual([3, 8, 8]);
    }
    expect(steps.slice(0, 2)).toEqual([
      { step: 1, steps: 2 },
      { step: 2, steps: 2 },
    ]);
    expect(steps).toHaveLength(10);
    const options = { betaStart: 0.00085, betaEnd: 0.012, betaSchedule: "scaledLinear", stepsOffset: 1 } as const;
    const [named, made] = [
      await pipeline.generate({ ...small, scheduler: "ddim", seed: 1 }),
      await pipeline.generate({ ...small, scheduler: diffusion.ddim({ ...options, clipSample: false }), seed: 1 }),
    ];
    expect(named.toArray()).toEqual(made.toArray());
  });

  test("half precision draws nearly the same picture", async () => {
    const options = { ...small, seed: 1, dtype: "float32" } as const;
    const draw = async (dtype: "float32" | "float16") =>
      (await diffusion.loadPipeline(folder, { dtype })).generate({ ...options, scheduler: "ddim" });
    const [full, half] = [await draw("float32"), await draw("float16")];
    expect(distance(half, full)).toBeLessThan(0.05);
    expect(distance(half, full)).toBeGreaterThan(0);
  });

  test("names of older files are read", async () => {
    const before = await (await diffusion.loadPipeline(folder)).generate({ ...small, seed: 1 });
    const old = `${folder}-old`;
    cpSync(folder, old, { recursive: true });
    const older = { to_q: "query", to_k: "key", to_v: "value", "to_out.0": "proj_attn" };
    const rename = (file: string, change: (name: string) => string) => {
      const path = join(old, file);
      const tensors = Object.entries(io.loadSafetensors(path)).map(([name, x]) => [change(name), x.clone()] as const);
      return io.saveSafetensors(path, Object.fromEntries(tensors));
    };
    await rename("vae/diffusion_pytorch_model.safetensors", (name) =>
      Object.entries(older).reduce(
        (text, [now, then]) => text.replace(`attentions.0.${now}`, `attentions.0.${then}`),
        name,
      ),
    );
    await rename("text_encoder/model.safetensors", (name) => `text_model.${name.replace(/^text_model\./, "")}`);
    const after = await (await diffusion.loadPipeline(old)).generate({ ...small, seed: 1 });
    expect(after.toArray()).toEqual(before.toArray());
  });
});

describe("a pipeline rejects unsupported settings", () => {
  const draw = async (options: object) =>
    (await diffusion.loadPipeline(folder)).generate({ prompt: "a", steps: 1, width: 8, height: 8, ...options });
  /** Loads the folder with a changed file. */
  async function loadWith(path: string, change: object): Promise<unknown> {
    const before = readFileSync(join(folder, path), "utf8");
    try {
      writeJson(path, { ...JSON.parse(before), ...change });
      return await diffusion.loadPipeline(folder);
    } finally {
      writeFileSync(join(folder, path), before);
    }
  }

  test.each([
    ["invalidOption", "expected width to be a multiple of 2", () => draw({ width: 7 })],
    ["wrongShape", "expected noise to be [1, 4, 4, 4]", () => draw({ noise: weight("x", [1, 4, 4]) })],
    [
      "unsupportedPipeline",
      "StableDiffusionXLPipeline",
      () => loadWith("model_index.json", { _class_name: "StableDiffusionXLPipeline" }),
    ],
    [
      "unsupportedPipeline",
      "expected unet to be",
      () => loadWith("model_index.json", { unet: ["diffusers", "Other"] }),
    ],
    [
      "unsupportedConfig",
      "expected class_embed_type",
      () => loadWith("unet/config.json", { class_embed_type: "timestep" }),
    ],
    ["unsupportedConfig", "down_block_types", () => loadWith("unet/config.json", { down_block_types: ["Other"] })],
    ["unsupportedConfig", "expected act_fn", () => loadWith("vae/config.json", { act_fn: "relu" })],
    ["unsupportedConfig", "other_key is not a setting of UNet", () => loadWith("unet/config.json", { other_key: 1 })],
    ["unsupportedConfig", "other_key is not a setting", () => loadWith("text_encoder/config.json", { other_key: 1 })],
    ["unknownActivation", "relu", () => loadWith("text_encoder/config.json", { hidden_act: "relu" })],
    ["stateDiffers", "unet", () => loadWith("unet/config.json", { layers_per_block: 2 })],
    ["unsupportedScheduler", "another kind of noise", () => draw({ scheduler: "flowMatch" })],
    ["notFound", "none", () => diffusion.loadPipeline("none")],
  ])("%s: %s is rejected", async (code, words, call) => {
    const error = await call().then(
      () => undefined,
      (cause: unknown) => cause,
    );
    expect(error).toMatchObject({ code });
    expect(String(error).toLowerCase()).toContain(words.toLowerCase());
  });

  test("configs of Stable Diffusion 1.5 and 2.1 are read", () => {
    const levels = ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"];
    const unet = {
      _class_name: "UNet2DConditionModel",
      _diffusers_version: "0.10.0",
      act_fn: "silu",
      sample_size: 96,

      attention_head_dim: [5, 10, 20, 20],
      block_out_channels: [320, 640, 1280, 1280],
      center_input_sample: false,
      cross_attention_dim: 1024,
      down_block_types: levels,
      downsample_padding: 1,
      dual_cross_attention: false,
      flip_sin_to_cos: true,
      freq_shift: 0,
      in_channels: 4,
      layers_per_block: 2,
      mid_block_scale_factor: 1,
      norm_eps: 1e-5,
      norm_num_groups: 32,
      num_class_embeds: null,
      only_cross_attention: false,
      out_channels: 4,
      up_block_types: levels.map((type) => type.replace("Down", "Up")).reverse(),
      use_linear_projection: true,
      upcast_attention: true,
    };
    expect(unetOptions(settings(unet))).toMatchObject({
      heads: [5, 10, 20, 20],
      contextWidth: 1024,
      midBlock: "attention",
    });
    const text = {
      _name_or_path: "a",
      architectures: ["CLIPTextModel"],
      attention_dropout: 0,
      bos_token_id: 0,
      dropout: 0,
      eos_token_id: 2,
      hidden_act: "gelu",
      hidden_size: 1024,
      initializer_factor: 1,
      initializer_range: 0.02,
      intermediate_size: 4096,
      layer_norm_eps: 1e-5,
      max_position_embeddings: 77,
      model_type: "clip_text_model",

      num_attention_heads: 16,
      num_hidden_layers: 23,
      pad_token_id: 1,
      projection_dim: 512,
      torch_dtype: "float32",
      transformers_version: "4.25.0.dev0",
      vocab_size: 49_408,
    };
    expect(textEncoderOptions(settings(text))).toMatchObject({ layers: 23, activation: "gelu" });
    const vae = {
      _class_name: "AutoencoderKL",
      _diffusers_version: "0.10.0",
      act_fn: "silu",
      sample_size: 768,
      block_out_channels: [128, 256, 512, 512],
      down_block_types: Array(4).fill("DownEncoderBlock2D"),
      in_channels: 3,
      latent_channels: 4,
      layers_per_block: 2,
      norm_num_groups: 32,
      out_channels: 3,
      up_block_types: Array(4).fill("UpDecoderBlock2D"),
    };
    expect(autoencoderOptions(settings(vae))).toMatchObject({ latentChannels: 4, layersPerBlock: 2 });
  });

  test("infinities that Python writes are read as missing", async () => {
    const text = JSON.stringify({ ...cases.at(-1)!.options, lambda_min_clipped: 0 });
    writeFileSync(
      join(folder, "scheduler", "scheduler_config.json"),
      text.replace('clipped":0', 'clipped": -Infinity'),
    );
    expect((await diffusion.loadPipeline(folder)).scheduler.kind).toBe("dpmSolver");
    writeFileSync(join(folder, "scheduler", "scheduler_config.json"), text.replace('clipped":0', 'clipped":-5'));
    await expect(draw({})).rejects.toThrow("expected lambda_min_clipped to be null, the only supported value, got -5");
    writeScheduler(cases[0].options);
  });

  test("an unknown scheduler is rejected when it is used, unless another one is chosen", async () => {
    writeScheduler({ ...cases[0].options, _class_name: "UniPCMultistepScheduler" });
    await expect(draw({})).rejects.toMatchObject({ code: "unknownScheduler" });
    expect((await draw({ scheduler: "ddim" })).shape).toEqual([3, 8, 8]);
    writeScheduler({ ...cases[0].options, skip_prk_steps: false });
    await expect(draw({})).rejects.toMatchObject({ code: "unsupportedConfig" });
    writeScheduler(cases[0].options);
  });
});
