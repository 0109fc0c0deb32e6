/** Diffusion: each function with valid arguments. */
import { diffusion, Generator, ones, type Tensor, text, zeros } from "../../src/index.ts";
import type { Call, Calls } from "./upper.ts";

const schedule = () => ({
  trainSteps: 8,
  betaStart: 0.001,
  betaEnd: 0.5,
  betaSchedule: "scaledLinear",
  predictionType: "velocity",
  timestepSpacing: "trailing",
  stepsOffset: 0,
});
const clipping = { clipSample: true, clipSampleRange: 0.5 };
const thresholding = { thresholding: true, dynamicThresholdingRatio: 0.5, sampleMaxValue: 2 };
const sigmas = { useKarrasSigmas: true, finalSigmasType: "sigmaMin" };
const x = () => ones([2, 1, 2, 2]);
const sampler = () => diffusion.ddpm({ trainSteps: 8 }).sampler(2);
const scheduler = diffusion.ddpm({ trainSteps: 8 });
const make =
  (Class: new (...values: never[]) => unknown): Call =>
  (...values) =>
    new Class(...values);

const unet = new diffusion.UNet({ blockOutChannels: [2], attention: [true], groups: 1, heads: 1, contextWidth: 2 });
const vae = new diffusion.Autoencoder({ blockOutChannels: [2], layersPerBlock: 1, groups: 1 });
const encoder = new diffusion.TextEncoder({ vocabularySize: 3, width: 2, layers: 1, heads: 1 });

const tokenizer = new text.PretrainedTokenizer({
  model: { type: "BPE", vocab: { a: 0, b: 1 }, merges: [] },
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: { type: "ByteLevel" },
  added_tokens: [],
});
const pipeline = new diffusion.Pipeline({
  unet,
  vae,
  textEncoder: encoder,
  prompts: { tokenizer, padding: 0 },
  dtype: "float32",
  schedulerFor: () => scheduler,
});

export const diffusionCalls: Calls = {
  ddpm: [diffusion.ddpm as Call, () => [{ ...schedule(), ...clipping, ...thresholding, varianceType: "fixedLarge" }]],
  ddim: [
    diffusion.ddim as Call,
    () => [{ ...schedule(), ...clipping, ...thresholding, eta: 0.5, setAlphaToOne: false }],
  ],
  pndm: [diffusion.pndm as Call, () => [{ ...schedule(), setAlphaToOne: true }]],
  euler: [diffusion.euler as Call, () => [{ ...schedule(), ...sigmas }]],
  eulerAncestral: [diffusion.eulerAncestral as Call, () => [schedule()]],
  dpmSolver: [
    diffusion.dpmSolver as Call,
    () => [{ ...schedule(), ...sigmas, ...thresholding, solverOrder: 1, solverType: "heun", lowerOrderFinal: false }],
  ],
  flowMatch: [diffusion.flowMatch as Call, () => [{ trainSteps: 8, shift: 3, stochasticSampling: true }]],
  "Scheduler.addNoise": [
    (...values) => scheduler.addNoise(...(values as unknown as [Tensor, Tensor, number])),
    () => [x(), x(), [1, 2]],
  ],
  "Scheduler.velocity": [
    (...values) => scheduler.velocity(...(values as unknown as [Tensor, Tensor, number])),
    () => [x(), x(), 1],
  ],
  "Scheduler.target": [
    (...values) => scheduler.target(...(values as unknown as [Tensor, Tensor, number])),
    () => [x(), x(), ones([2])],
  ],
  "Scheduler.sampler": [(steps) => scheduler.sampler(steps), () => [4]],
  "Scheduler.sample": [
    (noise, model, options) => scheduler.sample(noise, model, options),
    () => [x(), (sample: Tensor) => sample, { steps: 2, generator: new Generator(1) }],
  ],
  "Sampler.step": [
    (...values) => sampler().step(...(values as unknown as [Tensor, Tensor, number])),
    () => [x(), x(), 0, { noise: x(), generator: new Generator(1) }],
  ],
  "Sampler.scaleInput": [(given, at) => sampler().scaleInput(given, at), () => [x(), 1]],
  "Sampler.addNoise": [(given, noise, at) => sampler().addNoise(given, noise, at), () => [x(), x(), 1]],
  timestepEmbedding: [diffusion.timestepEmbedding as Call, () => [[1, 2], 4, { flipSinToCos: true, freqShift: 0 }]],
  UNet: [
    make(diffusion.UNet),
    () => [
      {
        inChannels: 1,
        outChannels: 1,
        blockOutChannels: [2],
        attention: [true],
        midBlock: "residual",
        layersPerBlock: 1,
        heads: [1],
        transformerLayers: 1,
        contextWidth: 2,
        linearProjection: true,
        groups: 1,
        normEps: 0,
        flipSinToCos: false,
        freqShift: 0,
        dtype: "float32",
      },
    ],
  ],
  "UNet.forward": [
    (given, timesteps, context) => unet.forward(given, timesteps, context),
    () => [zeros([2, 4, 2, 2]), [1, 2], zeros([2, 3, 2])],
  ],
  Autoencoder: [
    make(diffusion.Autoencoder),
    () => [
      {
        inChannels: 1,
        outChannels: 1,
        latentChannels: 1,
        blockOutChannels: [2],
        layersPerBlock: 1,
        groups: 1,
        scalingFactor: 0.5,
        midAttention: true,
        quantConv: false,
        postQuantConv: true,
      },
    ],
  ],
  "Autoencoder.encode": [(given) => vae.encode(given), () => [zeros([1, 3, 2, 2])]],
  "Autoencoder.decode": [(latents) => vae.decode(latents), () => [zeros([1, 4, 2, 2])]],
  TextEncoder: [
    make(diffusion.TextEncoder),
    () => [
      {
        vocabularySize: 3,
        width: 2,
        layers: 1,
        heads: 1,
        innerWidth: 2,
        contextLength: 3,
        activation: "gelu",
        normEps: 0,
      },
    ],
  ],
  "TextEncoder.forward": [(tokens) => encoder.forward(tokens), () => [zeros([1, 2], { dtype: "int64" })]],
  "Pipeline.generate": [
    (options) => pipeline.generate(options),
    () => [
      {
        prompt: "a",
        negativePrompt: "b",
        steps: 2,
        guidance: 2,
        width: 2,
        height: 2,
        seed: 1,
        scheduler: "ddpm",
        noise: zeros([1, 4, 2, 2]),
        dtype: "float32",
        onStep: () => undefined,
      },
    ],
  ],
  loadPipeline: [diffusion.loadPipeline as Call, () => ["none", { dtype: "float16" }]],
};
