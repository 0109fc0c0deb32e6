/** Functions above the operations, each with valid arguments. */
import { join } from "node:path";
import * as orchard from "../../src/index.ts";
import { diffusionCalls } from "./diffusion.ts";
import { distributedCalls } from "./distributed.ts";
import { distributionCalls } from "./distributions.ts";
import { linalgCalls } from "./linalg.ts";
import { nnCalls } from "./nn.ts";
import { quantCalls, quantLayerCalls } from "./quant.ts";
import {
  type Call,
  type Calls,
  folder,
  labels,
  leaf,
  make,
  picture,
  smallTokenizer,
  tokenizer,
  transforms,
} from "./shared.ts";
import { spectralCalls } from "./spectra.ts";
import { transformsCalls } from "./transforms.ts";

export { type Call, type Calls, enterFolder, leaveFolder } from "./shared.ts";

const { data, io, metrics, nn, optim, tensor, text, zeros, sum } = orchard;

function restoringBackend(call: Call): Call {
  return (...values) => {
    const before = orchard.getBackend();
    try {
      return call(...values);
    } finally {
      orchard.setBackend(before);
    }
  };
}

function restoringLimit(call: Call): Call {
  return (...values) => {
    try {
      return call(...values);
    } finally {
      orchard.setMemoryLimit(null);
    }
  };
}

function restoringStrict(call: Call): Call {
  return (...values) => {
    const before = orchard.isStrict();
    try {
      return call(...values);
    } finally {
      orchard.setStrict(before);
    }
  };
}

/** Each function with valid arguments. */
export const calls: Calls = {
  formatCodepaths: [orchard.formatCodepaths as Call, () => [orchard.codepaths()]],
  ...nnCalls,
  loadTokenizer: [text.loadTokenizer as Call, () => ["missing"]],
  PretrainedTokenizer: [make(text.PretrainedTokenizer), () => [smallTokenizer, { name: "a" }]],
  "PretrainedTokenizer.encode": [
    (own, options) => new text.PretrainedTokenizer(smallTokenizer).encode(own, options),
    () => ["ab", { addSpecialTokens: false }],
  ],
  "PretrainedTokenizer.encodePair": [
    (own, pair, options) => new text.PretrainedTokenizer(smallTokenizer).encodePair(own, pair, options),
    () => ["ab", "a", { addSpecialTokens: false, maxTokens: 2 }],
  ],
  "PretrainedTokenizer.decode": [
    (tokens, options) => new text.PretrainedTokenizer(smallTokenizer).decode(tokens, options),
    () => [[0, 1], { skipSpecialTokens: false }],
  ],
  "PretrainedTokenizer.decoder": [
    (options) => new text.PretrainedTokenizer(smallTokenizer).decoder(options),
    () => [{ isStart: true }],
  ],
  compileConstraint: [text.compileConstraint as Call, () => [tokenizer, { schema: { type: "integer" } }]],
  ChatTemplate: [make(text.ChatTemplate), () => ["{{ messages[0].content }}", { bosToken: "<s>" }]],
  "ChatTemplate.render": [
    (messages, options) => new text.ChatTemplate("{{ messages[0].content }}", {}).render(messages, options),
    () => [[{ role: "user", content: "a" }], { addGenerationPrompt: false, variables: { a: 1 } }],
  ],
  AdamW: [make(optim.AdamW), () => [[leaf()], { lr: 1, betas: [0.9, 0.9], eps: 1, weightDecay: 0, amsgrad: true }]],
  Adam: [make(optim.Adam), () => [[leaf()], { lr: 1 }]],
  SGD: [make(optim.SGD), () => [[leaf()], { lr: 1, momentum: 0.9, nesterov: true, dampening: 0 }]],
  Lion: [make(optim.Lion), () => [[leaf()], { lr: 1, betas: [0.9, 0.9] }]],
  RMSprop: [make(optim.RMSprop), () => [[leaf()], { lr: 1, alpha: 0.9, eps: 1, momentum: 0.5, centered: true }]],
  Adagrad: [make(optim.Adagrad), () => [[leaf()], { lr: 1, lrDecay: 0.5, initialAccumulatorValue: 1, eps: 1 }]],
  Adadelta: [make(optim.Adadelta), () => [[leaf()], { lr: 1, rho: 0.5, eps: 1, weightDecay: 1 }]],
  Adamax: [make(optim.Adamax), () => [[leaf()], { lr: 1, betas: [0.9, 0.9], eps: 1, weightDecay: 1 }]],
  NAdam: [make(optim.NAdam), () => [[leaf()], { lr: 1, momentumDecay: 0.5, decoupledWeightDecay: true }]],
  RAdam: [make(optim.RAdam), () => [[leaf()], { lr: 1, betas: [0.9, 0.9], decoupledWeightDecay: true }]],
  Adafactor: [make(optim.Adafactor), () => [[leaf()], { lr: 1, eps: [null, 1], beta2Decay: -1, d: 1, maximize: true }]],
  ASGD: [make(optim.ASGD), () => [[leaf()], { lr: 1, lambd: 0.5, alpha: 1, t0: 1, weightDecay: 1, maximize: true }]],
  Rprop: [make(optim.Rprop), () => [[leaf()], { lr: 1, etas: [0.5, 2], stepSizes: [0, 1], maximize: true }]],
  LBFGS: [
    make(optim.LBFGS),
    () => [[leaf()], { lr: 1, maxIter: 1, maxEval: null, historySize: 1, lineSearchFn: "strongWolfe" }],
  ],
  "LBFGS.step": [
    (closure) => new optim.LBFGS([leaf()], { maxIter: 1 }).step(closure),
    () => [() => sum(zeros([2], { requiresGrad: true }))],
  ],
  "LBFGS.loadStateDict": [
    (state) => new optim.LBFGS([leaf()]).loadStateDict(state),
    () => [new optim.LBFGS([leaf()]).stateDict()],
  ],
  Muon: [
    make(optim.Muon),
    () => [
      [leaf()],
      { lr: 1, newtonSchulzSteps: 1, newtonSchulzCoefficients: [3, 1, 2], eps: 1, adjustLearningRate: "matchRmsAdamw" },
    ],
  ],
  "Optimizer.setLearningRate": [(lr, group) => new optim.SGD([leaf()]).setLearningRate(lr, group), () => [1, 0]],
  "Optimizer.scaleLearningRate": [(factor) => new optim.SGD([leaf()]).scaleLearningRate(factor), () => [1]],
  "Optimizer.loadStateDict": [
    (state) => new optim.SGD([leaf()]).loadStateDict(state),
    () => [new optim.SGD([leaf()]).stateDict()],
  ],
  GradScaler: [make(optim.GradScaler), () => [{ initialScale: 2, growthInterval: 3 }]],
  "GradScaler.scale": [(loss) => new optim.GradScaler().scale(loss), () => [zeros([])]],
  "GradScaler.step": [(optimizer) => new optim.GradScaler().step(optimizer), () => [new optim.SGD([leaf()])]],
  "GradScaler.unscale": [(optimizer) => new optim.GradScaler().unscale(optimizer), () => [new optim.SGD([leaf()])]],
  "GradScaler.loadStateDict": [
    (state) => new optim.GradScaler().loadStateDict(state),
    () => [new optim.GradScaler().stateDict()],
  ],
  clipGradNorm: [optim.clipGradNorm as Call, () => [[leaf()], 1, { normType: 2, errorIfNonfinite: false }]],
  clipGradValue: [optim.clipGradValue as Call, () => [[leaf()], 1]],
  "optim.linear": [optim.linear as Call, () => [{ total: 3, from: 1, to: 0 }]],
  "optim.step": [optim.step as Call, () => [{ stepSize: 3, gamma: 0.5 }]],
  "optim.multiStep": [optim.multiStep as Call, () => [{ milestones: [3, 4], gamma: 0.5 }]],
  "optim.exponential": [optim.exponential as Call, () => [{ gamma: 0.5 }]],
  "optim.polynomial": [optim.polynomial as Call, () => [{ total: 3, power: 2 }]],
  "optim.cosineAnnealing": [optim.cosineAnnealing as Call, () => [{ total: 3, floor: 0 }]],
  "optim.cosineWarmRestarts": [optim.cosineWarmRestarts as Call, () => [{ period: 3, multiple: 2, floor: 0 }]],
  "optim.cyclic": [optim.cyclic as Call, () => [{ base: 0.1, stepsUp: 3, mode: "exponential", gamma: 0.5 }]],
  "optim.chained": [optim.chained as Call, () => [[optim.constant()]]],
  "optim.sequential": [optim.sequential as Call, () => [[optim.constant(), optim.constant()], [3]]],
  EarlyStopping: [make(optim.EarlyStopping), () => [{ patience: 3, mode: "max", minDelta: 0.1 }]],
  "EarlyStopping.step": [(x) => new optim.EarlyStopping().step(x), () => [1]],
  "EarlyStopping.loadStateDict": [
    (state) => new optim.EarlyStopping().loadStateDict(state),
    () => [new optim.EarlyStopping().stateDict()],
  ],
  ReduceOnPlateau: [make(optim.ReduceOnPlateau), () => [new optim.SGD([leaf()]), { patience: 3, mode: "max" }]],
  "ReduceOnPlateau.step": [(x) => new optim.ReduceOnPlateau(new optim.SGD([leaf()])).step(x), () => [1]],
  "ReduceOnPlateau.loadStateDict": [
    (state) => new optim.ReduceOnPlateau(new optim.SGD([leaf()])).loadStateDict(state),
    () => [{ best: 1, badSteps: 0, cooldown: 0 }],
  ],
  AveragedWeights: [make(optim.AveragedWeights), () => [[leaf()], { decay: 0.5 }]],
  "AveragedWeights.withAverages": [(body) => new optim.AveragedWeights([leaf()]).withAverages(body), () => [() => 1]],
  "AveragedWeights.loadStateDict": [
    (state) => new optim.AveragedWeights([leaf()]).loadStateDict(state),
    () => [{ updates: 1, tensors: { 0: zeros([2, 2]) } }],
  ],
  cosineWithWarmup: [optim.cosineWithWarmup as Call, () => [{ warmup: 1, total: 3, floor: 0 }]],
  oneCycle: [optim.oneCycle as Call, () => [{ total: 3, anneal: "linear" }]],
  ...distributedCalls,
  ...diffusionCalls,
  ...distributionCalls,
  ...linalgCalls,
  ...spectralCalls,
  ...transformsCalls,
  ...quantCalls,
  ...quantLayerCalls,
  backward: [orchard.backward as Call, () => [sum(leaf()), tensor(1), { retainGraph: true, createGraph: false }]],
  grad: [orchard.grad as Call, () => gradArguments()],
  valueAndGrad: [orchard.valueAndGrad as Call, () => [(x: orchard.Tensor) => sum(x), 1]],
  "valueAndGrad's function": [(x) => orchard.valueAndGrad((y: orchard.Tensor) => sum(y))(x), () => [zeros([2])]],
  gradcheck: [
    orchard.gradcheck as Call,
    () => [(x: orchard.Tensor) => x, [zeros([1], { dtype: "float64", requiresGrad: true })], { epsilon: 1e-6 }],
  ],
  detach: [orchard.detach as Call, () => [zeros([2])]],
  noGrad: [orchard.noGrad as Call, () => [() => 1]],
  autocast: [orchard.autocast as Call, () => ["bfloat16", () => 1]],
  enableGrad: [orchard.enableGrad as Call, () => [() => 1]],
  tidy: [orchard.tidy as Call, () => [() => zeros([2])]],
  keep: [orchard.keep as Call, () => [zeros([2])]],
  compile: [
    orchard.compile as Call,
    () => [
      (x: orchard.Tensor) => x,
      { state: [new nn.Linear(2, 2)], variants: 2, fuse: false, fast: true, dump: folder },
    ],
  ],
  "CompiledFunction.save": [
    (...values) => {
      const saved = orchard.compile((x: orchard.Tensor) => x);
      for (let call = 0; call < 3; call++) orchard.withBackend("cpu", () => saved(zeros([2])));
      return (saved.save as Call)(...values);
    },
    () => [join(folder, "a.program")],
  ],
  loadProgram: [orchard.loadProgram as Call, () => [join(folder, "none.program")]],
  withBackend: [orchard.withBackend as Call, () => ["cpu", () => 1]],
  withStrict: [orchard.withStrict as Call, () => [true, () => 1]],
  setBackend: [restoringBackend(orchard.setBackend as Call), () => ["cpu"]],
  setStrict: [restoringStrict(orchard.setStrict as Call), () => [false]],
  setMemoryLimit: [restoringLimit(orchard.setMemoryLimit as Call), () => [2 ** 40]],
  setMemoryFraction: [restoringLimit(orchard.setMemoryFraction as Call), () => [1]],
  manualSeed: [orchard.manualSeed as Call, () => [1]],
  detectAnomaly: [orchard.detectAnomaly as Call, () => [() => 1, { infinity: true }]],
  override: [
    (...values) => (orchard.override as (...own: never[]) => Disposable)(...values)[Symbol.dispose](),
    () => ["exp", "cpu", () => undefined, { name: "own", when: () => false }],
  ],
  withOverride: [orchard.withOverride as Call, () => ["exp", "cpu", () => undefined, () => 1, { name: "own" }]],
  route: [
    (...values) => (orchard.route as (...own: never[]) => Disposable)(...values)[Symbol.dispose](),
    () => ["softmax", "cpu"],
  ],
  withRoute: [orchard.withRoute as Call, () => ["softmax", "cpu", () => 1]],
  Generator: [make(orchard.Generator), () => [1]],
  "Generator.manualSeed": [(seed) => new orchard.Generator().manualSeed(seed), () => [1]],
  "Generator.setState": [(state) => new orchard.Generator().setState(state), () => [{ seed: 1n, offset: 0n }]],
  ByteTokenizer: [(text) => tokenizer.encode(text), () => ["a"]],
  "ByteTokenizer.decode": [(tokens) => tokenizer.decode(tokens), () => [[97]]],
  "ByteTokenizer.bytesOf": [(token) => tokenizer.bytesOf(token), () => [97]],
  Gpt2Tokenizer: [(text) => new data.Gpt2Tokenizer().encode(text), () => ["a"]],
  "Gpt2Tokenizer.decode": [(tokens) => new data.Gpt2Tokenizer().decode(tokens), () => [[97]]],
  BpeTokenizer: [(text) => data.trainBpe("a b", { size: 257 }).encode(text as string), () => ["a"]],
  "BpeTokenizer.decode": [
    (tokens) => data.trainBpe("a b", { size: 257 }).decode(tokens as Iterable<number>),
    () => [[97]],
  ],
  accuracy: [metrics.accuracy as Call, () => [labels(), labels()]],
  confusionMatrix: [metrics.confusionMatrix as Call, () => [labels(), labels(), { classes: 2 }]],
  precision: [metrics.precision as Call, () => [labels(), labels(), { average: "macro", zeroDivision: 1 }]],
  recall: [metrics.recall as Call, () => [labels(), labels(), { average: "macro", zeroDivision: 1 }]],
  f1Score: [metrics.f1Score as Call, () => [labels(), labels(), { average: "macro", zeroDivision: 1 }]],
  rocAuc: [metrics.rocAuc as Call, () => [tensor([0.5, 0.25]), labels(), { average: "macro" }]],
  perplexity: [metrics.perplexity as Call, () => [zeros([2, 3]), labels(), { ignoreIndex: 0 }]],
  wordErrorRate: [metrics.wordErrorRate as Call, () => [["one two"], ["one too"]]],
  trainBpe: [data.trainBpe as Call, () => ["a text", { size: 260 }]],
  TensorDataset: [make(data.TensorDataset), () => [zeros([2, 2]), zeros([2])]],
  Subset: [make(data.Subset), () => [new data.TensorDataset(zeros([2])), [1, 0]]],
  ConcatDataset: [make(data.ConcatDataset), () => [[new data.TensorDataset(zeros([2]))]]],
  SummaryWriter: [make(io.SummaryWriter), () => [join(folder, "events")]],
  "SummaryWriter.addScalar": [
    (...values) => {
      using log = new io.SummaryWriter(join(folder, "events"));
      log.addScalar(...(values as unknown as [string, number, number]));
    },
    () => ["loss", 0.5, 3],
  ],
  loadCsv: [io.loadCsv as Call, () => [join(folder, "a.csv"), { delimiter: ";", header: false }]],
  loadParquet: [io.loadParquet as Call, () => [join(folder, "a.parquet"), { columns: ["a"], dtypes: { a: "int32" } }]],
  progress: [data.progress as Call, () => [[1, 2], { label: "items", total: 2 }]],
  "Progress.show": [(figures) => data.progress([1]).show(figures as never), () => [{ loss: 0.5 }]],
  IterableDataset: [make(data.IterableDataset), () => [() => [1, 2], { shuffleBuffer: 2 }]],
  weightedRandomSampler: [data.weightedRandomSampler as Call, () => [[1, 2], { count: 1, replacement: false }]],
  MappedDataset: [make(data.MappedDataset), () => [new data.TensorDataset(zeros([2])), () => 1]],
  ImageFolder: [
    make(data.ImageFolder),
    () => [folder, { mode: "gray", channels: "last", orient: false, maxPixels: 9, transform: (x: unknown) => x }],
  ],
  "transforms.compose": [transforms.compose as Call, () => [[(x: unknown) => x]]],
  "transforms.toFloat": [transforms.toFloat as Call, () => [{ dtype: "float64" }]],
  "transforms.normalize": [
    transforms.normalize as Call,
    () => [
      [1, 2],
      [3, 4],
    ],
  ],
  "transforms.resize": [transforms.resize as Call, () => [4, { mode: "bicubic", antialias: false, maxSize: 9 }]],
  "transforms.centerCrop": [transforms.centerCrop as Call, () => [[2, 3]]],
  "transforms.pad": [transforms.pad as Call, () => [[1, 2, 3, 4], { mode: "reflect", value: 1 }]],
  "transforms.randomCrop": [transforms.randomCrop as Call, () => [2, { padding: 1, mode: "constant", value: 2 }]],
  "transforms.randomResizedCrop": [
    transforms.randomResizedCrop as Call,
    () => [2, { mode: "nearest", antialias: false, scale: [0.1, 1], ratio: [1, 2] }],
  ],
  "transforms.randomHorizontalFlip": [transforms.randomHorizontalFlip as Call, () => [{ p: 0.5 }]],
  "transforms.randomVerticalFlip": [transforms.randomVerticalFlip as Call, () => [{ p: 0.5 }]],
  "transforms.rotate": [transforms.rotate as Call, () => [30, { mode: "bilinear", fill: 1 }]],
  "transforms.affine": [
    transforms.affine as Call,
    () => [{ angle: 1, translate: [1, 2], scale: 2, shear: [1, 2], mode: "bilinear", fill: 1 }],
  ],
  "transforms.randomRotation": [transforms.randomRotation as Call, () => [[1, 2], { mode: "bilinear", fill: 1 }]],
  "transforms.randomAffine": [
    transforms.randomAffine as Call,
    () => [3, { translate: [0.1, 0.1], scale: [1, 2], shear: [1, 2, 3, 4], mode: "bilinear", fill: 1 }],
  ],
  "transforms.adjustBrightness": [transforms.adjustBrightness as Call, () => [2]],
  "transforms.adjustContrast": [transforms.adjustContrast as Call, () => [2]],
  "transforms.adjustSaturation": [transforms.adjustSaturation as Call, () => [2]],
  "transforms.adjustHue": [transforms.adjustHue as Call, () => [0.2]],
  "transforms.grayscale": [transforms.grayscale as Call, () => [{ channels: 3 }]],
  "transforms.colorJitter": [
    transforms.colorJitter as Call,
    () => [{ brightness: 0.1, contrast: [1, 2], saturation: 0.1, hue: 0.1 }],
  ],
  randomSplit: [data.randomSplit as Call, () => [new data.TensorDataset(zeros([4])), [3, 1], { seed: 1 }]],
  collate: [data.collate as Call, () => [[1, 2]]],
  DataLoader: [
    make(data.DataLoader),
    () => [new data.TensorDataset(zeros([4])), 2, true, { seed: 1, dropLast: true, prefetch: 1 }],
  ],
  "DataLoader.setState": [
    (state) => new data.DataLoader(new data.TensorDataset(zeros([4]))).setState(state),
    () => [{ epoch: 0, batch: 1, seed: 0n }],
  ],
  openWorkerDataset: [data.openWorkerDataset as Call, () => [join(folder, "none.ts"), { workers: 1 }]],
  openTextDataset: [
    data.openTextDataset as Call,
    () => [{ paths: import.meta.path, tokenizer, contextLength: 4, heldOut: 0.1, seed: 1, cacheFolder: folder }],
  ],
  openSafetensors: [io.openSafetensors as Call, () => [join(folder, "none.safetensors")]],
  loadWeights: [
    io.loadWeights as Call,
    () => [join(folder, "none.safetensors"), { quantization: { bits: 4, groupSize: 64, symmetric: false } }],
  ],
  loadSafetensors: [io.loadSafetensors as Call, () => [join(folder, "none.safetensors")]],
  saveSafetensors: [
    io.saveSafetensors as Call,
    () => [join(folder, "a.safetensors"), { x: zeros([2]) }, { metadata: { a: "b" } }],
  ],
  loadNpy: [io.loadNpy as Call, () => [join(folder, "none.npy")]],
  saveNpy: [io.saveNpy as Call, () => [join(folder, "a.npy"), zeros([2])]],
  loadNpz: [io.loadNpz as Call, () => [join(folder, "none.npz")]],
  saveNpz: [io.saveNpz as Call, () => [join(folder, "a.npz"), { x: zeros([2]) }, { compressed: true }]],
  loadAudio: [io.loadAudio as Call, () => [join(folder, "none.wav"), { maxSamples: 9 }]],
  loadImage: [
    io.loadImage as Call,
    () => [join(folder, "none.png"), { mode: "gray", channels: "last", orient: false, maxPixels: 9 }],
  ],
  saveImage: [
    io.saveImage as Call,
    () => [join(folder, "a.png"), picture(), { channels: "last", quality: 9, lossless: true }],
  ],
  encodeImage: [
    io.encodeImage as Call,
    () => [picture(), { format: "webp", channels: "last", quality: 9, lossless: true }],
  ],
  loadOnnx: [
    io.loadOnnx as Call,
    () => [join(folder, "none.onnx"), { dtype: "float64", quantize: "q8_0", precision: "fast" }],
  ],
  saveOnnx: [
    io.saveOnnx as Call,
    () => [new orchard.nn.ReLU(), { x: zeros([2]) }, { path: join(folder, "a.onnx"), axes: { x: { 0: "n" } } }],
  ],
  openGguf: [io.openGguf as Call, () => [join(folder, "none.gguf")]],
  saveGguf: [
    io.saveGguf as Call,
    () => [join(folder, "a.gguf"), { x: zeros([2]) }, { metadata: { a: "b" }, alignment: 32 }],
  ],
  saveCheckpoint: [
    io.saveCheckpoint as Call,
    () => [join(folder, "run"), { model: { x: zeros([2]) }, step: 1, generator: new orchard.Generator() }, { keep: 1 }],
  ],
  loadCheckpoint: [io.loadCheckpoint as Call, () => [join(folder, "run")]],
};

function gradArguments() {
  const x = leaf();
  return [[sum(x)], [x], { allowUnused: true, gradOutputs: [tensor(1)], createGraph: false }];
}
