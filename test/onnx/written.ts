/** Modules that can be written as ONNX, with inputs for any size of the batch. */
import * as library from "../../src/index.ts";
import { nn, rand, randint, randn, type Tensor } from "../../src/index.ts";

export type Layer = nn.Module<Tensor[]>;

/** A module of a function. */
class Computed extends nn.Module<Tensor[]> {
  readonly inner: readonly unknown[];
  readonly #compute: (...inputs: Tensor[]) => unknown;

  constructor(compute: (...inputs: Tensor[]) => unknown, ...inner: readonly unknown[]) {
    super();
    this.inner = inner;
    this.#compute = compute;
  }

  forward(...inputs: Tensor[]): unknown {
    return this.#compute(...inputs);
  }
}

/** Returns a module that computes a function. */
export const of = (compute: (...inputs: Tensor[]) => unknown, ...inner: readonly unknown[]): Layer =>
  new Computed(compute, ...inner);

export interface Case {
  readonly module: () => Layer;
  /** Inputs for a batch of n. Their first axes are the batch unless `axes` says otherwise. */
  readonly inputs: (n: number) => Readonly<Record<string, Tensor>>;
  readonly axes?: Readonly<Record<string, Readonly<Record<number, string>>>>;
}

const image = (n: number) => ({ x: randn([n, 4, 9, 8]) });
const signal = (n: number) => ({ x: randn([n, 4, 20]) });
const row = (n: number) => ({ x: randn([n, 6]) });
const sequence = (n: number) => ({ x: randn([n, 5, 8]) });
const steps = (n: number) => ({ x: randn([4, n, 8]) });
const lengths = (n: number) => ({ x: randn([n, n + 3, 8]) });
const positive = (n: number) => ({ x: rand([n, 6]).add(0.5) });
const layer = (make: () => unknown, inputs: Case["inputs"] = image): Case => ({ module: make as () => Layer, inputs });
const each = (compute: (...inputs: Tensor[]) => unknown, inputs: Case["inputs"] = row): Case =>
  layer(() => of(compute), inputs);

const unary = (names: readonly string[], inputs: Case["inputs"]): Record<string, Case> =>
  Object.fromEntries(
    names.map((name) => [
      name,
      each((x) => (library as unknown as Record<string, (x: Tensor) => Tensor>)[name](x), inputs),
    ]),
  );

export const cases: Readonly<Record<string, Case>> = {
  ...unary(["abs", "neg", "sign", "floor", "ceil", "round", "relu", "exp", "erf", "sigmoid", "softsign", "sin"], row),
  ...unary(["cos", "tanh", "sinh", "cosh", "atan", "asinh", "silu", "gelu", "hardswish", "hardsigmoid", "mish"], row),
  ...unary(["logSigmoid", "tanhshrink", "square", "exp2", "expm1", "softplus", "elu", "leakyRelu", "relu6"], row),
  ...unary(["log", "sqrt", "rsqrt", "reciprocal", "log1p", "log2", "log10"], positive),
  linear: layer(() => new nn.Linear(6, 3), row),
  "linear of three axes": layer(() => new nn.Linear(8, 3, { bias: false }), sequence),
  "convolution of one axis": layer(() => new nn.Conv1d(4, 6, 3, { stride: 2, padding: 1 }), signal),
  "convolution in groups": layer(() => new nn.Conv2d(4, 6, 3, { groups: 2, dilation: 2, padding: 2 })),
  "transposed convolution": layer(() => new nn.ConvTranspose2d(4, 3, 3, { stride: 2, padding: 1, outputPadding: 1 })),
  "batch normalization": layer(() => new nn.BatchNorm2d(4)),
  "layer normalization": layer(() => new nn.LayerNorm(8), sequence),
  "root mean square normalization": layer(() => new nn.RMSNorm(8), sequence),
  "group normalization": layer(() => new nn.GroupNorm(2, 4)),
  "maximum pooling": layer(() => new nn.MaxPool2d(3, { stride: 2, padding: 1 })),
  "average pooling": layer(() => new nn.AvgPool2d(2)),
  "adaptive average pooling": layer(() => new nn.AdaptiveAvgPool2d([3, 2])),
  dropout: layer(() => new nn.Dropout(0.5), row),
  upsampling: layer(() => new nn.Upsample({ scaleFactor: 2, mode: "bilinear" })),
  flatten: layer(() => new nn.Flatten()),
  embedding: layer(
    () => new nn.Embedding(7, 5),
    (n) => ({ x: randint(0, 7, [n, 3]) }),
  ),
  LSTM: { ...layer(() => recurrent(new nn.LSTM(8, 5)), steps), axes: { x: { 1: "batch" } } },
  GRU: { ...layer(() => recurrent(new nn.GRU(8, 5, { bidirectional: true })), steps), axes: { x: { 1: "batch" } } },
  RNN: { ...layer(() => recurrent(new nn.RNN(8, 5)), steps), axes: { x: { 1: "batch" } } },
  "self-attention": layer(() => selfAttention(), sequence),
  "a causal transformer": { ...layer(() => causal(), lengths), axes: { x: { 0: "batch", 1: "length" } } },
  softmax: each((x) => library.softmax(x, 1)),
  "log-softmax": each((x) => library.logSoftmax(x, { dim: 0 })),
  "operands that broadcast": each(
    (x, y) => x.mul(2).add(y.sub(1)).div(3),
    (n) => ({ x: randn([n, 1, 4]), y: randn([n, 5, 1]) }),
  ),
  comparison: each((x) => library.where(library.gt(x, 0), x, x.mul(0.1))),
  clamp: each((x) => library.clamp(x, { min: -0.5, max: 0.7 })),
  sums: each((x) => ({ all: x.sum({ dim: 1 }), kept: x.mean({ dim: -1, keepdim: true }) })),
  norms: each((x) => ({ two: library.norm(x, { dim: 1 }), most: library.amax(x, { dim: 1 }) })),
  "logsumexp and cumsum": each((x) => [library.logsumexp(x, { dim: 1 }), library.cumsum(x, { dim: 1 })]),
  argmax: each((x) => library.argmax(x, { dim: 1 })),
  views: each((x) => x.reshape([x.shape[0], 2, 3]).permute([0, 2, 1]).narrow(1, 1, 2).reshape([x.shape[0], 4])),
  "a step in a slice": each((x) => library.slice(x, { dim: 1, start: 1, step: 2 })),
  "joined tensors": each((x) => library.cat([x, x.mul(2), x.narrow(1, 0, 2)], 1)),
  "stacked tensors": each((x) => library.stack([x, x.neg()], 1)),
  padding: each((x) => library.pad(x, [1, 2, 0, 0], { value: 3 })),
  "a residual block": layer(() => {
    const inner = new nn.Sequential(new nn.Conv2d(4, 4, 3, { padding: 1 }), new nn.BatchNorm2d(4), new nn.ReLU());
    return of((x) => library.relu(inner.forward(x as never).add(x)), inner);
  }),
  "dtypes that change": each((x) => x.to("float64").mul(2).to("float32")),
  "reflected borders": {
    ...layer(() => new nn.ReflectionPad2d([1, 2, 1, 0])),
    axes: { x: { 0: "batch", 2: "height" } },
  },
  "windows that overlap": layer(() => new nn.Unfold(3, { padding: 1 })),
  "added windows": layer(
    () => new nn.Fold([5, 6], 2),
    (n) => ({ x: randn([n, 12, 20]) }),
  ),
  "an axis in reverse": each((x) => library.flip(x, [1])),
  "parts that are set in place": each((x) => {
    const result = x.mul(2);
    result.narrow(1, 1, 2).zero_();
    result.select(1, 4).add_(1);
    result.narrow(1, 0, 2).mul_(3);
    return { result, diagonal: library.diagEmbed(result) };
  }),
  "maxima of windows, and their inverse": layer(() => {
    const pool = new nn.MaxPool2d(2, { returnIndices: true });
    return of((x) => {
      const { values, indices } = pool.forward(x as never) as unknown as Record<"values" | "indices", Tensor>;
      return new nn.MaxUnpool2d(2).forward(values as never, indices as never);
    });
  }),
  "adaptive maximum pooling": layer(() => new nn.AdaptiveMaxPool2d([4, 3])),
  "a softmax of limited scores in a window": {
    ...each(
      (q, k, v) => library.flashAttention(q, k, v, { causal: true, softcap: 5, window: 2 }),
      (n) => ({ q: randn([n, 4, 6, 4]), k: randn([n, 2, 6, 4]), v: randn([n, 2, 6, 4]) }),
    ),
  },
  "rotary positions": {
    ...layer(
      () => of((x) => [library.rope(x), library.rope(x, { interleaved: true, offset: 3 })]),
      (n) => ({ x: randn([n, 2, n + 4, 8]) }),
    ),
    axes: { x: { 0: "batch", 2: "length" } },
  },
  "a constant for each row of the batch": each(
    (x) => library.cat([library.expand(library.arange(8).mul(2), [x.shape[0], 1, 8]), x], 1),
    sequence,
  ),
  "a language model": {
    ...layer(
      () => new nn.GPT({ vocabularySize: 11, contextLength: 24, layers: 2, heads: 2, width: 8 }),
      (n) => ({ x: randint(0, 11, [n, n + 4]) }),
    ),
    axes: { x: { 0: "batch", 1: "length" } },
  },
  "a transformer": {
    ...layer(
      () => new nn.Transformer({ dModel: 8, nhead: 2, numEncoderLayers: 1, numDecoderLayers: 1, dimFeedforward: 16 }),
      (n) => ({ x: randn([5, n, 8]), y: randn([4, n, 8]) }),
    ),
    axes: { x: { 1: "batch" }, y: { 1: "batch" } },
  },
  "gated and plain blocks": layer(() => {
    const [gated, plain] = [new nn.SwiGLU(8), new nn.MLP(8)];
    const [attention, block] = [
      new nn.MultiHeadAttention({ width: 8, heads: 2 }),
      new nn.TransformerBlock({ width: 8, heads: 2 }),
    ];
    const all = [gated, plain, attention, block] as const;
    return of((x) => all.map((each) => each.forward(x as never)), ...all);
  }, sequence),
  spectrogram: each(
    (x) => library.signal.spectrogram(x, { nFft: 16 }),
    (n) => ({ x: randn([n, 64]) }),
  ),
  "spectra and back": each(
    (x) => {
      const spectrum = library.fft.rfft(x);
      return { real: library.fft.irfft(spectrum.mul(spectrum)), sizes: library.fft.fft(x).abs() };
    },
    (n) => ({ x: randn([n, 12]).mul(0.2) }),
  ),
  "losses of each row": each(
    (x, classes) => ({
      plain: library.crossEntropy(x, classes, { reduction: "none" }),
      smooth: library.crossEntropy(x, classes, { reduction: "none", labelSmoothing: 0.2, ignoreIndex: 1 }),
      margin: library.multiMarginLoss(x, classes, { reduction: "none" }),
    }),
    (n) => ({ x: randn([n, 6]), classes: randint(0, 6, [n]) }),
  ),
  "other losses": each(
    (x, y) =>
      [
        new nn.GaussianNLLLoss({ reduction: "none" }).forward(x, y, y.abs().add(1)),
        new nn.HingeEmbeddingLoss({ reduction: "none" }).forward(x, y.sign()),
        new nn.MarginRankingLoss({ reduction: "none" }).forward(x, y, y.sign()),
        new nn.MultiLabelSoftMarginLoss(undefined, { reduction: "none" }).forward(x, y.gt(0).to("float32")),
        new nn.TripletMarginLoss({ reduction: "none" }).forward(x, y, x.add(y)),
        new nn.CosineEmbeddingLoss({ reduction: "none" }).forward(x, y, y.select(1, 0).sign()),
      ] as Tensor[],
    (n) => ({ x: randn([n, 6]), y: randn([n, 6]) }),
  ),
  "sorted rows": each((x) => ({
    ...library.topk(x, 3, { dim: 1 }),
    median: library.median(x, { dim: 1 }).values,
    running: library.cummax(x, 1).values,
  })),
  "elements put at places": each(
    (x, places) => ({
      sums: library.scatterAdd(x, 1, places as Tensor<"int64">, x.narrow(1, 0, 3)),
    }),
    (n) => ({ x: randn([n, 6]), places: randint(0, 6, [n, 3]) }),
  ),
  "a product of inputs": each(
    (x, y) => x.matmul(y),
    (n) => ({ x: randn([n, 3, 4]), y: randn([n, 4, 2]) }),
  ),
};

const recurrent = (inner: nn.LSTM | nn.GRU | nn.RNN): Layer => of((x) => inner.forward(x).output, inner);

function selfAttention(): Layer {
  const inner = new nn.MultiheadAttention(8, 2);
  return of((x) => (inner.forward as unknown as (...all: Tensor[]) => { output: Tensor } | Tensor)(x, x, x), inner);
}

function causal(): Layer {
  const projection = new nn.Linear(8, 24);
  return of((x) => {
    const [batch, length] = x.shape;
    const heads = projection.forward(x).reshape([batch, length, 3, 2, 4]);
    const [q, k, v] = [0, 1, 2].map((at) => heads.select(2, at).transpose(1, 2));
    const attended = library.flashAttention(q, k, v, { causal: true });
    return attended.transpose(1, 2).reshape([batch, length, 8]);
  }, projection);
}

/** Names of the axes that may vary. */
export const axesOf = ({ axes }: Case, inputs: Readonly<Record<string, Tensor>>) =>
  axes ?? Object.fromEntries(Object.keys(inputs).map((name) => [name, { 0: "batch" }]));
