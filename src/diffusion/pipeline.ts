/** Pictures from texts. */
import { join } from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../autograd/modes.ts";
import { getBackend } from "../backend/policy.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { aFunction, aNumber, aPath, choice, either, flag, instanceOf, text } from "../core/kinds.ts";
import { count, type NumberRule, notNegative } from "../core/options.ts";
import { madeBy, named, operand, parameters, required } from "../core/parameters.ts";
import { floatDType } from "../nn/layers/kinds.ts";
import { noMemory } from "../nn/models/loading/fill.ts";
import { compiler } from "../observe/compiler.ts";
import { toDType } from "../ops/copy/cast.ts";
import * as ops from "../ops/index.ts";
import { Generator } from "../random/generator.ts";
import type { FloatDType } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import { sameShape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import { Autoencoder } from "./autoencoder.ts";
import { loadPromptTokenizer, type PromptTokenizer } from "./clip_tokenizer.ts";
import { autoencoderOptions, textEncoderOptions, unetOptions } from "./configs.ts";
import { fill, settingsOf } from "./files.ts";
import { stepCount } from "./options.ts";
import { Scheduler, type SchedulerKind } from "./scheduler.ts";
import { schedulerKinds, schedulerOf } from "./scheduler_config.ts";
import { TextEncoder } from "./text_encoder.ts";
import { UNet } from "./unet.ts";

/** Options of {@link loadPipeline}. */
export interface LoadPipelineOptions {
  /** The dtype of weights and activations. Default float32. */
  readonly dtype?: FloatDType | undefined;
}

/** A step of {@link Pipeline.generate}. */
export interface GenerationProgress {
  /** The number of steps that are done. */
  readonly step: number;
  /** The number of all steps. */
  readonly steps: number;
}

/** Options of {@link Pipeline.generate}. */
export interface GeneratePictureOptions {
  /** The text to draw. */
  readonly prompt: string;
  /** A text that describes what the picture should not show. Default `""`. */
  readonly negativePrompt?: string | undefined;
  /** The number of steps. Default 50; 20 are enough for `"dpmSolver"`. */
  readonly steps?: number | undefined;
  /** The weight of the prompt against the negative one, which is ignored up to 1. Default 7.5. */
  readonly guidance?: number | undefined;
  /** Pixels, a multiple of {@link Autoencoder.downsampling}, usually 8. Default 512. */
  readonly width?: number | undefined;
  /** Pixels, as `width`. Default 512. */
  readonly height?: number | undefined;
  /** The seed of the noise. Default: the global generator, which `manualSeed` seeds. */
  readonly seed?: number | undefined;
  /** Replaces the folder's scheduler and keeps its noise options: the name of a scheduler, or a scheduler. */
  readonly scheduler?: SchedulerKind | Scheduler | undefined;
  /** The noise to start from, standard normal, [1, latentChannels, height / 8, width / 8]. Default: drawn. */
  readonly noise?: Tensor | undefined;
  /** The dtype of the picture: 0 to 255, or 0 to 1 with `"float32"`. Default `"uint8"`. */
  readonly dtype?: "uint8" | "float32" | undefined;
  /**
   * Whether steps after the first three are computed by a program (`compile`), with the same bits. It is used for at
   * least 8 steps on the cpu backend. Default true.
   */
  readonly compile?: boolean | undefined;
  /** Called after each step. */
  readonly onStep?: ((progress: GenerationProgress) => void) | undefined;
}

const aSeed: NumberRule = {
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
};
const readLoad = parameters("loadPipeline", { folder: operand(aPath), dtype: named(floatDType, "float32") });
const readGenerate = parameters("Pipeline.generate", {
  prompt: required(text),
  negativePrompt: named(text, ""),
  steps: named(stepCount, 50),
  guidance: named(aNumber(notNegative), 7.5),
  width: named(aNumber(count), 512),
  height: named(aNumber(count), 512),
  seed: named(aNumber(aSeed)),
  scheduler: named(either(choice(...schedulerKinds), instanceOf(Scheduler, "a Scheduler"))),
  noise: named(aTensor),
  dtype: named(choice("uint8", "float32"), "uint8"),
  compile: named(flag, true),
  onStep: named(aFunction<NonNullable<GeneratePictureOptions["onStep"]>>()),
});

/** Fewer steps do not repay the recording of three of them. */
const LEAST_COMPILED = 8;

/** The parts of a {@link Pipeline}. */
interface Parts {
  readonly unet: UNet;
  readonly vae: Autoencoder;
  readonly textEncoder: TextEncoder;
  readonly prompts: PromptTokenizer;
  /** Creates the folder's scheduler, or another scheduler with the folder's noise options. */
  readonly schedulerFor: (kind?: SchedulerKind) => Scheduler;
  readonly dtype: FloatDType;
}

/**
 * Stable Diffusion 1 or 2: generates pictures from texts. {@link loadPipeline} returns it. There is no safety checker:
 * pictures are returned as they are generated.
 *
 * @example
 * const pipeline = await diffusion.loadPipeline("stable-diffusion-v1-5");
 * const picture = await pipeline.generate({ prompt: "an orchard in spring" });
 */
export class Pipeline {
  /** Predicts noise in latents. */
  readonly unet: UNet;
  /** Decodes latents. */
  readonly vae: Autoencoder;
  /** Encodes prompts. */
  readonly textEncoder: TextEncoder;
  readonly #parts: Parts;

  /** @internal */
  constructor(parts: Parts);
  constructor(...values: unknown[]) {
    const parts = values[0] as Parts | undefined;
    if (!(parts?.unet instanceof UNet)) throw madeBy("Pipeline", "diffusion.loadPipeline()");
    this.unet = parts.unet;
    this.vae = parts.vae;
    this.textEncoder = parts.textEncoder;
    this.#parts = parts;
  }

  /** The scheduler of the folder. */
  get scheduler(): Scheduler {
    return this.#parts.schedulerFor();
  }

  /**
   * Generates a picture. The event loop runs between steps.
   *
   * @returns uint8 [3, height, width], for `io.saveImage`
   *
   * @example
   * const pipeline = await diffusion.loadPipeline("stable-diffusion-v1-5");
   * const picture = await pipeline.generate({ prompt: "an orchard in spring", steps: 20, scheduler: "dpmSolver" });
   * await io.saveImage("orchard.png", picture);
   *
   * @throws {ArgumentError} `invalidOption` for sides that are no multiples of 8, and other invalid options.
   * @throws {ShapeError} if `noise` has another shape.
   */
  async generate(options: GeneratePictureOptions): Promise<Tensor>;
  async generate(...values: unknown[]): Promise<Tensor> {
    const given = readGenerate(values);
    const { prompt, negativePrompt, steps, guidance, scheduler, onStep, dtype } = given;
    const sampler = (scheduler instanceof Scheduler ? scheduler : this.#parts.schedulerFor(scheduler)).sampler(steps);
    const generator = given.seed === undefined ? undefined : new Generator(given.seed);
    const isGuided = guidance > 1;
    const own = (body: () => Tensor): Tensor => keep(noGrad(() => tidy(body)));
    const start = this.#start(given, generator);
    const context = own(() => this.#encode(isGuided ? [negativePrompt, prompt] : [prompt]));
    const predict = (x: Tensor, t: Tensor) => this.#predict(x, t, context, guidance);
    const isCompiled = given.compile && sampler.timesteps.length >= LEAST_COMPILED && getBackend() === "cpu";
    const compiled = isCompiled ? (compiler()?.(predict, [this.unet]) ?? null) : null;
    using _ = { [Symbol.dispose]: () => compiled?.reset() };
    let latents = own(() => ops.mul(start, sampler.initialScale));
    for (const [at, t] of sampler.timesteps.entries()) {
      const before = latents;
      latents = own(() => {
        const input = sampler.scaleInput(before, at);
        const output = (compiled ?? predict)(input, ops.tensor([t], { dtype: "float32" }));
        return sampler.step(output, before, at, { generator }).x;
      });
      before.dispose();
      onStep?.({ step: at + 1, steps: sampler.timesteps.length });
      await yieldToEventLoop();
    }
    const picture = own(() => this.#decode(latents, dtype));
    latents.dispose();
    context.dispose();
    return picture;
  }

  /** Standard normal noise. */
  #start({ width, height, noise }: ReturnType<typeof readGenerate>, generator: Generator | undefined): Tensor {
    const { downsampling } = this.vae;
    for (const [name, size] of Object.entries({ width, height }))
      if (size % downsampling !== 0)
        throw new ArgumentError(
          "Pipeline.generate",
          "invalidOption",
          `expected ${name} to be a multiple of ${downsampling}, got ${size}`,
        );
    const shape = [1, this.unet.inChannels, height / downsampling, width / downsampling];
    if (noise && !sameShape(noise.shape, shape))
      throw new ShapeError(
        "Pipeline.generate",
        "wrongShape",
        `expected noise to be [${shape.join(", ")}], got ${noise.describe()}`,
      );
    return toDType(noise ?? ops.randn(shape, { generator }), this.#parts.dtype);
  }

  /** The states of prompts, [prompts, tokens, width]. Longer prompts are cut, shorter ones padded. */
  #encode(prompts: readonly string[]): Tensor {
    const { tokenizer, padding } = this.#parts.prompts;
    const length = this.textEncoder.contextLength;
    const rows = prompts.map((prompt) => {
      const { tokens } = tokenizer.encodeInputs("Pipeline.generate", prompt, { maxTokens: length });
      return [...tokens, ...Array<number>(length - tokens.length).fill(padding)];
    });
    return this.textEncoder.forward(ops.tensor(rows, { dtype: "int64" }));
  }

  /**
   * Returns the U-Net's output. With two prompts, it is n + guidance · (p − n), where n is the output for the negative
   * prompt and p the output for the prompt.
   */
  #predict(x: Tensor, t: Tensor, context: Tensor, guidance: number): Tensor {
    const prompts = context.shape[0];
    const output = this.unet.forward(prompts === 1 ? x : ops.cat([x, x], { dim: 0 }), t, context);
    if (prompts === 1) return output;
    const [negative, positive] = ops.chunk(output, 2, 0);
    return ops.add(negative, ops.mul(ops.sub(positive, negative), guidance));
  }

  #decode(latents: Tensor, dtype: "uint8" | "float32"): Tensor {
    const pictures = this.vae.decode(ops.div(latents, this.vae.scalingFactor));
    const light = ops.clamp(toDType(ops.add(ops.mul(pictures, 0.5), 0.5), "float32"), 0, 1);
    const picture = ops.select(light, 0, 0);
    return dtype === "float32" ? picture : toDType(ops.round(ops.mul(picture, 255)), "uint8");
  }
}

/** The parts of a folder, and their classes. */
const classes = {
  unet: "UNet2DConditionModel",
  vae: "AutoencoderKL",
  text_encoder: "CLIPTextModel",
} as const;

/**
 * Loads Stable Diffusion 1 or 2 from a folder of `diffusers`: `model_index.json`, and the folders `unet`, `vae`,
 * `text_encoder`, `tokenizer` and `scheduler` with configs and safetensors.
 *
 * @param folder the folder
 *
 * @example
 * const pipeline = await diffusion.loadPipeline("stable-diffusion-v1-5");
 *
 * @throws {FileError} @throws {FileFormatError} for missing or damaged files.
 * @throws {ArgumentError} `unsupportedPipeline`, `unsupportedConfig`, naming the part or setting.
 * @throws {StateDictError} if weights do not fit a config.
 */
export async function loadPipeline(folder: string, options?: LoadPipelineOptions): Promise<Pipeline>;
export async function loadPipeline(...values: unknown[]): Promise<Pipeline> {
  const { folder, dtype } = readLoad(values);
  const index = settingsOf(folder, "model_index.json");
  const name = index.textIfAny("_class_name") ?? "";
  if (!/^StableDiffusion(Img2Img)?Pipeline$/.test(name))
    throw index.refused("unsupportedPipeline", `expected _class_name to be StableDiffusionPipeline, got "${name}"`);
  for (const [part, expected] of Object.entries(classes)) {
    const entry = index.get(part);
    const got: unknown = Array.isArray(entry) ? entry[1] : entry;
    if (got !== expected)
      throw index.refused("unsupportedPipeline", `expected ${part} to be ${expected}, got ${JSON.stringify(got)}`);
  }
  const config = (part: string) => settingsOf(folder, part, "config.json");
  const scheduler = settingsOf(folder, "scheduler", "scheduler_config.json");
  const schedulerFor = (kind?: SchedulerKind) => schedulerOf(scheduler, kind);
  const empty = { dtype, initialization: noMemory };
  // configs before weights, so that errors appear immediately
  const unet = new UNet({ ...unetOptions(config("unet")), ...empty });
  const vae = new Autoencoder({ ...autoencoderOptions(config("vae")), ...empty });
  const textEncoder = new TextEncoder({ ...textEncoderOptions(config("text_encoder")), ...empty });
  const prompts = loadPromptTokenizer(join(folder, "tokenizer"));
  for (const [part, model] of Object.entries({ unet, vae, text_encoder: textEncoder })) {
    await fill(model, join(folder, part), dtype);
    model.eval();
  }
  return new Pipeline({ unet, vae, textEncoder, prompts, schedulerFor, dtype });
}
