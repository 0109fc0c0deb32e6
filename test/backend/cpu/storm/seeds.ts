/** Valid calls of every function of the cpu dylib, as the library makes them: the storm alters these. */
import { cpuLibrary } from "../../../../src/backend/cpu/loader.ts";
import { singleRows } from "../../../../src/backend/cpu/single_rows.ts";
import { nativeTables } from "../../../../src/backend/cpu/tables.ts";
import { withBackend, withStrict } from "../../../../src/backend/policy.ts";
import * as library from "../../../../src/index.ts";
import { readAheadCall } from "../../../../src/nn/models/loading/read_ahead.ts";
import { scoresCall } from "../../../../src/ops/attention/primitive.ts";
import { attentionStep } from "../../../../src/ops/attention/step.ts";
import { finishActivations, finished, noFinish } from "../../../../src/ops/convolution/finish.ts";
import { convertCall } from "../../../../src/ops/copy/primitive.ts";
import { quantizedProjections } from "../../../../src/quant/matmul/projections.ts";
import { packQ8Into } from "../../../../src/quant/pack_q8.ts";
import { calls, disposeLeaves, leafOf, makeOperands, type OperationName } from "../../../ops/calls.ts";

/**
 * A call: the function's ordinal, its block with the bytes of operands, and the operands; absent ones are undefined.
 */
export interface Seed {
  readonly ordinal: number;
  readonly block: Float64Array;
  readonly operands: readonly (Uint8Array | undefined)[];
}

type Bytes = NodeJS.TypedArray;
type NativeRun = (ordinal: number, block: Float64Array, bytes: number, ...operands: Bytes[]) => number;

/** Larger operands are not kept, because the storm copies them for every call. */
const MOST_BYTES = 12_000;
const MOST_OF_A_FUNCTION = 60;

const copyOf = ({ buffer, byteOffset, byteLength }: Bytes): Uint8Array =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength).slice();

/** Runs `work` and records the calls that it makes, before their results are written. */
function recorded(work: () => void): Seed[] {
  const native = cpuLibrary().native as unknown as Record<string, NativeRun>;
  const counts = Object.values(nativeTables().functions).map(({ operands }) => operands);
  const seeds: Seed[] = [];
  const names = Object.keys(native).filter((name) => /^orchard_cpu_run\d+$/.test(name));
  const before = names.map((name) => native[name]);
  const rows = cpuLibrary().native.orchard_cpu_run_rows;
  for (const [at, name] of names.entries())
    native[name] = (ordinal, block, bytes, ...operands) => {
      const given = operands.slice(0, counts[ordinal]);
      if (given.every(({ byteLength }) => byteLength <= MOST_BYTES))
        seeds.push({
          ordinal,
          block: block.slice(),
          operands: given.map((own) => (own === block ? undefined : copyOf(own))),
        });
      return before[at](ordinal, block, bytes, ...operands);
    };
  native["orchard_cpu_run_rows"] = ((ordinal, blocks, bytes, count, addresses) => {
    const all = (blocks as Float64Array).subarray(0, bytes / 8);
    const own = singleRows(all, addresses as Float64Array, { count, operands: counts[ordinal] });
    for (const { block, operands } of own)
      seeds.push({ ordinal, block: block.slice(), operands: operands.map((bytes) => bytes && copyOf(bytes)) });
    return rows(ordinal, blocks, bytes, count, addresses);
  }) as typeof rows as never;
  try {
    withStrict(true, () => withBackend("cpu", work));
  } finally {
    for (const [at, name] of names.entries()) native[name] = before[at];
    native["orchard_cpu_run_rows"] = rows as never;
  }
  return seeds;
}

const functions = library as unknown as Readonly<Record<string, (...values: readonly unknown[]) => unknown>>;

const tensorsIn = (value: unknown): library.Tensor[] => {
  if (value instanceof library.Tensor) return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(tensorsIn) : [];
};

/** A call of every operation, and of its gradient if it has one. */
function everyOperation(size: number): void {
  const operands = makeOperands(size);
  for (const name of Object.keys(calls) as OperationName[]) {
    const values = calls[name](operands);
    for (const result of tensorsIn(functions[name](...values))) result.dataSync();
    gradientsOf(() => functions[name](...calls[name](withLeaves(operands))));
  }
}

type Operands = ReturnType<typeof makeOperands>;

function withLeaves(operands: Operands): Operands {
  const { x, y, vector, other, batch } = operands;
  const leaves = Object.entries({ x, y, vector, other, batch }).map(([name, own]) => [name, leafOf(own)]);
  return { ...operands, ...(Object.fromEntries(leaves) as Pick<Operands, "x">) };
}

/** Some operations have no gradient, or refuse to change a leaf: their valid calls are made above. */
function gradientsOf(run: () => unknown): void {
  try {
    for (const result of tensorsIn(run())) if (result.requiresGrad) library.sum(result).backward();
  } catch (error) {
    if (!(error instanceof library.OrchardError)) throw error;
  } finally {
    disposeLeaves();
  }
}

const { AdamW, Lion, SGD, clipGradNorm } = library.optim;
const leaf = (shape: readonly number[], dtype: library.DType = "float32"): library.Tensor =>
  leafOf(library.ones(shape, { dtype }));
const whole = (
  values: library.NestedArray<number>,
  dtype: "int64" | "int32" = "int64",
): library.Tensor<"int64" | "int32"> => library.tensor(values, { dtype });

/** Operations on other dtypes, which have other kernels. */
function otherDtypes(): void {
  for (const dtype of ["float64", "float16", "bfloat16"] as const) {
    const [x, y] = [() => leaf([5, 9], dtype), () => leaf([5, 9], dtype)];
    for (const run of [
      () => library.softmax(x(), { dim: 1 }),
      () => library.layerNorm(x(), { weight: leaf([9], dtype), bias: leaf([9], dtype) }),
      () => library.matmul(x(), y().transpose(0, 1)),
      () => library.cumsum(x(), { dim: 0 }),
      () => library.mseLoss(x(), y()),
      () => library.crossEntropy(x(), whole([0, 1, 2, 3, 8])),
      () => library.nllLoss(x(), whole([0, 1, 2, 3, 8]), { weight: library.rand([9], { dtype }) }),
      () => library.max(x(), { dim: 0 }),
      () => library.embedding(whole([[0, 4]], "int32"), x()),
    ])
      gradientsOf(run);
  }
}

type Options = Omit<library.FlashAttentionOptions, "returnLogSumExp" | "returnDropoutMask">;

function attention(): void {
  const attend = (options: Options, [batch, heads, queries, keys, dim]: readonly number[]) =>
    gradientsOf(() => {
      const [q, k, v] = [queries, keys, keys].map((rows) => leaf([batch, heads, rows, dim]));
      return library.flashAttention(q, k, v, { ...options, path: "fused" });
    });
  const sizes = [2, 2, 7, 6, 5];
  attend({}, sizes);
  attend({ causal: true, dropout: 0.3, alibi: [1, 0.5] }, sizes);
  attend({ mask: library.ones([7, 6], { dtype: "bool" }), softcap: 5, window: 3 }, sizes);
  attend({ bias: leaf([1, 2, 7, 6]), sinks: leaf([2]) }, sizes);
  attend({}, [1, 2, 2, 20, 8]);
  attend({ causal: true }, [1, 1, 40, 40, 16]);
  attend({ cuSeqlens: [0, 3, 10], dropout: 0.3 }, [1, 2, 10, 10, 4]);
  const [q, k, v] = [0, 1, 2].map(() => library.ones([1, 2, 6, 4]));
  const { dropoutMask } = library.flashAttention(q, k, v, { dropout: 0.5, returnDropoutMask: true, path: "fused" });
  dropoutMask!.dataSync();
}

function bags(): void {
  for (const mode of ["sum", "mean", "max"] as const) {
    gradientsOf(() => library.embeddingBag(whole([[0, 1, 2, 1]]), leaf([4, 6]), { mode }));
    const offsets = whole([0, 3]);
    gradientsOf(() => library.embeddingBag(whole([0, 1, 3, 1]), leaf([4, 6]), { offsets, mode }));
  }
}

/** Overlapping windows with padding, and norms of several numbers of channels. */
function pictures(): void {
  for (const dtype of ["float32", "float64", "bfloat16"] as const) {
    gradientsOf(() => library.maxPool2d(leaf([2, 2, 5, 7], dtype), 3, { stride: 2, padding: 1 }));
    const vectors = { weight: leaf([4], dtype), bias: leaf([4], dtype) };
    gradientsOf(() => library.groupNorm(leaf([2, 4, 3], dtype), 2, vectors));
    gradientsOf(() => library.groupNorm(leaf([2, 4, 3], dtype), 4));
    library.maxPool1d(leaf([2, 2, 9], dtype), 2, { dilation: 2, returnIndices: true });
    const [runningMean, runningVar] = [library.zeros([3]), library.ones([3])];
    for (const shape of [
      [4, 3],
      [2, 3, 6, 7],
    ])
      for (const training of [true, false]) {
        const options = { weight: leaf([3], dtype), bias: leaf([3], dtype), runningMean, runningVar, training };
        gradientsOf(() => library.batchNorm(leaf(shape, dtype), options));
      }
  }
}

/** Layers with and without biases, in both directions. */
function recurrentLayers(): void {
  for (const dtype of ["float32", "float64"] as const)
    for (const bias of [true, false]) {
      const options = { dtype, bias, bidirectional: true };
      const x = library.rand([3, 2, 5], { dtype });
      library.noGrad(() => {
        for (const layer of [new library.nn.LSTM(5, 4, options), new library.nn.GRU(5, 4, options)])
          layer.forward(x).output.dataSync();
        for (const nonlinearity of ["tanh", "relu"] as const)
          new library.nn.RNN(5, 4, { ...options, nonlinearity }).forward(x).output.dataSync();
      });
      for (const layer of [new library.nn.LSTM(5, 4, options), new library.nn.GRU(5, 4, options)])
        gradientsOf(() => layer.forward(leaf([3, 2, 5], dtype)).output);
    }
}

/** Epilogues of convolutions in inference, with each activation and all optional operands. */
function finishes(): void {
  for (const dtype of ["float32", "float64"] as const)
    for (const activation of finishActivations)
      for (const isBare of [true, false]) {
        const [y, bias, added] = [[2, 3, 5], [3], [2, 3, 5]].map((shape) => library.rand(shape, { dtype }));
        const options = { ...noFinish, activation, alpha: 0.1, beta: 0.5 };
        library.noGrad(() => finished(y, isBare ? undefined : bias, isBare ? undefined : added, options));
      }
}

function optimizers(): void {
  for (const dtype of ["float32", "float64", "bfloat16"] as const)
    for (const make of [
      (own: library.Tensor[]) => new SGD(own, { lr: 0.1, momentum: 0.9 }),
      (own: library.Tensor[]) => new AdamW(own, { lr: 0.1, amsgrad: true }),
      (own: library.Tensor[]) => new Lion(own, { lr: 0.1 }),
    ]) {
      const parameters = [leaf([3, 5], dtype), leaf([4], dtype)];
      const optimizer = make(parameters);
      library.sum(library.add(library.sum(parameters[0]), library.sum(parameters[1]))).backward();
      clipGradNorm(parameters, 1);
      optimizer.step();
      disposeLeaves();
    }
}

/** QR, its reflections and their gradients. */
function reflections(dtype: "float32" | "float64"): void {
  const tall = () => leaf([9, 4], dtype);
  gradientsOf(() => library.linalg.qr(leaf([5, 5], dtype)).q);
  gradientsOf(() => library.linalg.qr(tall(), "r").r);
  for (const mode of ["complete", "r"] as const) library.linalg.qr(library.ones([9, 4], { dtype }), mode).r.dataSync();
  const { a, tau } = library.linalg.geqrf(library.ones([9, 4], { dtype }));
  gradientsOf(() => library.linalg.geqrf(tall()).a);
  library.linalg.householderProduct(a, tau).dataSync();
  gradientsOf(() => library.linalg.lstsq(tall(), leaf([9, 2], dtype)).solution);
  gradientsOf(() => library.linalg.lstsq(tall(), leaf([9, 2], dtype), { driver: "gels" }).solution);
  for (const transpose of [false, true]) gradientsOf(() => library.linalg.ormqr(a, tau, tall(), { transpose }));
}

function weights(): void {
  const int4 = library.quantizeInt4(library.rand([3, 128]));
  gradientsOf(() => library.quantizedMatmul(leaf([2, 128]), int4));
  gradientsOf(() => library.quantizedMatmul(leaf([6, 128], "float16"), int4, { bias: leaf([3], "float16") }));
  gradientsOf(() => library.quantizedMatmul(leaf([5, 64]), library.quantizeGgml(library.rand([9, 64]), "q4_0")));
  const blocks = library.quantizeGgml(library.rand([9, 64]), "q4_0");
  gradientsOf(() => library.quantizedSwiglu(leaf([2, 3, 64]).transpose(0, 1), blocks, blocks, { upBias: leaf([9]) }));
  const fast = { precision: "fast" } as const;
  for (const rows of [1, 17])
    library.quantizedSwiglu(library.rand([rows, 128]).to("float16"), int4, int4, {
      ...fast,
      gateBias: library.rand([3]),
    });
  const projection = (weight: typeof int4) => ({ weight, bias: leaf([weight.shape[0]]) });
  const six = library.quantizeGgml(library.rand([5, 256]), "q6_K");
  const ofThree = [int4, library.quantizeInt4(library.rand([9, 128])), int4].map(projection);
  for (const rows of [1, 5, 17])
    for (const precision of ["exact", "fast"] as const)
      for (const all of [ofThree, [six, six, six].map(projection)])
        quantizedProjections(library.rand([rows, all[0].weight.shape[1]]), all as never, precision);
  for (const groups of [int4, library.quantize(library.rand([5, 96]), { bits: 8, groupSize: 32, symmetric: true })])
    for (const rows of [1, 5, 17]) library.quantizedMatmul(library.rand([rows, groups.shape[1]]), groups, fast);
  for (const format of ["q4_1", "q8_0", "q6_K"] as const)
    library.quantizedMatmul(library.rand([6, 256]), library.quantizeGgml(library.rand([3, 256]), format), fast);
  for (const format of ["q4_0", "q5_1", "q8_0", "mxfp4", "bf16"] as const)
    library.dequantize(library.quantizeGgml(library.rand([3, 64]), format)).dataSync();
  for (const bits of [2, 3, 8] as const)
    for (const symmetric of [true, false])
      library
        .dequantize(library.quantize(library.rand([2, 128]), { bits, symmetric }), { dtype: "float16" })
        .dataSync();
}

/** A step of decoding with a cache of one block and of two, and the stores of a cache in q8_0 blocks. */
function caches(): void {
  const roomOf = () => ({ keys: library.zeros([2, 1, 5, 4]), values: library.zeros([2, 1, 5, 4]) });
  const rotation = { cycles: Float64Array.of(0.1, 0.01), magnitude: 1, interleaved: false };
  for (const [dtype, rooms] of [
    ["float32", 1],
    ["float32", 2],
    ["float16", 1],
  ] as const)
    for (const tokens of [1, 3]) {
      const [q, k, v] = [3, 1, 1].map((heads) => library.ones([2, tokens, 4 * heads], { dtype })) as Queries;
      const sequences = [0, 1].map((batch) => ({ room: batch % rooms, batch, position: 4, first: batch, rows: 4 }));
      const given = Array.from({ length: rooms }, roomOf);
      attentionStep([q, k, v], given, { scale: 0.5, softcap: 9, window: 3, rotation, sequences, heads: 3, kvHeads: 1 });
    }
  packedSteps();
  packQ8Into(library.zeros([1, 2, 3, 68], { dtype: "uint8" }), library.rand([1, 2, 3, 64]));
  readAheadCall("load", { offset: 1, bytes: 9000 }, [new Uint8Array(10_000)]);
}

/** Decoding steps with caches in q8_0 blocks, tokens first. */
function packedSteps(): void {
  const rotation = { cycles: Float64Array.of(0.1, 0.01), magnitude: 1, interleaved: false };
  const roomOf = () => library.zeros([5, 2, 1, 68], { dtype: "uint8" }).permute([1, 2, 0, 3]);
  for (const dtype of ["float32", "bfloat16"] as const)
    for (const rooms of [1, 2]) {
      const [q, k, v] = [3, 1, 1].map((heads) => library.ones([2, 1, 64 * heads], { dtype })) as Queries;
      const sequences = [0, 1].map((batch) => ({ room: batch % rooms, batch, position: 4, first: batch, rows: 4 }));
      const given = Array.from({ length: rooms }, () => ({ keys: roomOf(), values: roomOf() }));
      attentionStep([q, k, v], given, { scale: 0.5, rotation, sequences, heads: 3, kvHeads: 1 });
    }
}

/** Rows, columns and images of lengths with each algorithm: in lanes, in two factors, and by Bluestein's. */
function transforms(): void {
  const { fft } = library;
  for (const dtype of ["float32", "float64"] as const) {
    for (const n of [7, 30, 64]) gradientsOf(() => library.viewAsReal(fft.fft(leaf([3, n], dtype), { dim: n % 2 })));
    for (const n of [167, 540]) gradientsOf(() => fft.irfft(fft.rfft(leaf([n], dtype)), { n }));
    gradientsOf(() => library.viewAsReal(fft.rfft2(leaf([9, 8], dtype))));
  }
}

type Queries = [q: library.Tensor, k: library.Tensor, v: library.Tensor];

/** Factorizations of complex matrices. */
function complexMatrices(dtype: "complex64" | "complex128"): void {
  const { linalg } = library;
  const draw = (rows: number, columns: number) => library.randn([2, rows, columns], { dtype });
  const square = draw(5, 5);
  const definite = library.matmul(square, library.conj(square.transpose(-2, -1)));
  linalg.cholesky(library.add(definite, library.eye(5, { dtype }))).dataSync();
  linalg.solve(square, draw(5, 3)).dataSync();
  linalg.eigh(definite).eigenvectors.dataSync();
  linalg.eig(square).eigenvectors.dataSync();
  for (const [rows, columns] of [
    [6, 4],
    [4, 6],
  ] as const) {
    linalg.qr(draw(rows, columns), { mode: "complete" }).q.dataSync();
    linalg.svd(draw(rows, columns)).u.dataSync();
    linalg.lu(draw(rows, columns)).u.dataSync();
  }
}

function realMatrices(dtype: "float32" | "float64"): void {
  const matrix = () => leafOf(library.mul(library.eye(5, { dtype }), 4));
  gradientsOf(() => library.linalg.cholesky(matrix()));
  library.linalg.choleskyInverse(matrix().detach()).dataSync();
  for (const mode of ["reflect", "replicate", "circular"] as const)
    gradientsOf(() => library.pad(leaf([2, 4, 3], dtype), [1, 2, 0, 1], { mode }));
  for (const mode of ["bilinear", "nearest", "bicubic"] as const)
    gradientsOf(() => library.gridSample(leaf([1, 2, 3, 4], dtype), leaf([1, 2, 3, 2], dtype), { mode }));
  gradientsOf(() => library.linalg.solve(matrix(), leaf([5, 7], dtype)));
  gradientsOf(() => library.linalg.lu(matrix()).u);
  library.linalg.lu(matrix().detach()).u.dataSync();
  library.linalg.det(matrix()).dataSync();
  library.linalg.slogdet(matrix()).logabsdet.dataSync();
  library.linalg.matrixExp(matrix()).dataSync();
  library.linalg.vander(library.ones([5], { dtype })).dataSync();
  library.corrcoef(matrix().detach()).dataSync();
  library.cov(matrix().detach()).dataSync();
  library.trapezoid(matrix().detach()).dataSync();
  library.cumulativeTrapezoid(matrix().detach(), { dim: 0 }).dataSync();
  library.histc(matrix().detach()).dataSync();
  library.histogram(library.rand([9], { dtype }), 3, { weight: library.rand([9], { dtype }) }).hist.dataSync();
  library.linalg.inv(library.eye(70, { dtype })).dataSync();
  const { ld, pivots } = library.linalg.ldlFactor(matrix());
  library.linalg.ldlSolve(ld, pivots, library.ones([5, 3], { dtype })).dataSync();
  gradientsOf(() => library.linalg.eigh(matrix()).eigenvalues);
  gradientsOf(() => library.linalg.svdvals(matrix()));
  complexMatrices(dtype === "float32" ? "complex64" : "complex128");
  library.linalg.eig(matrix()).eigenvectors.dataSync();
  reflections(dtype);
  gradientsOf(() => library.linalg.solveTriangular(matrix(), leaf([5, 7], dtype), { upper: false }));
}

/** Functions that no operation's call reaches. */
function further(): void {
  otherDtypes();
  attention();
  transforms();
  bags();
  pictures();
  weights();
  caches();
  recurrentLayers();
  finishes();
  optimizers();
  gradientsOf(() => library.rope(leaf([1, 4, 2, 8])));
  gradientsOf(() => library.rope(leaf([2, 3, 8]), { positions: whole([4, 0, 9]) }));
  gradientsOf(() => library.dropout(leaf([7, 3]), { p: 0.5 }));
  gradientsOf(() => library.swiglu(leaf([7, 3]), leaf([7, 3])));
  gradientsOf(() => library.max(leaf([7, 3]), { dim: 0 }));
  gradientsOf(() => library.gather(leaf([7, 3]), whole([[0, 2]]).expand([7, 2]), { dim: 1 }));
  for (const dtype of ["float32", "float64"] as const) realMatrices(dtype);
  library.mode(library.rand([1025])).indices.dataSync(); // longer slices are sorted
  library.arange(0, 9, { dtype: "int64" }).dataSync();
  library.linspace(0, 1, 9).dataSync();
  library
    .rand([3, 5])
    .transpose(0, 1)
    .add(library.rand([5, 3]))
    .dataSync();
  const scores = new Float64Array(1);
  scoresCall("storm", { pass: "forward" }, [scores]);
  convertCall("storm", { from: "float32", to: "float16", fromOffset: 0, toOffset: 0, count: 5 }, [
    new Float32Array(5),
    new Uint16Array(5),
  ]);
}

/** The calls by ordinal of their functions, several for each. */
export function rightCalls(): readonly (readonly Seed[])[] {
  const all = recorded(() => {
    for (const size of [4, 8, 32]) everyOperation(size);
    further();
  });
  const functions = Object.values(nativeTables().functions).sort((a, b) => a.ordinal - b.ordinal);
  return functions.map(({ ordinal }) => spread(all.filter((seed) => seed.ordinal === ordinal)));
}

/** Limits the number of different calls, from first to last. */
function spread(seeds: readonly Seed[]): Seed[] {
  const different = [...new Map(seeds.map((seed) => [seed.block.join(), seed])).values()];
  const step = Math.max(1, different.length / MOST_OF_A_FUNCTION);
  return Array.from(
    { length: Math.min(different.length, MOST_OF_A_FUNCTION) },
    (_, at) => different[Math.floor(at * step)],
  );
}
