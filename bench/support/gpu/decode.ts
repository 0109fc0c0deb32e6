/**
 * Generates text with a Llama of 1.04 G weights in q4_0 on the selected backend: tokens per second, and the bytes of
 * weights per second as a share of the speed of a copy in the same memory.
 */
import {
  Generator,
  getBackend,
  metalContext,
  nn,
  noGrad,
  QuantizedTensor,
  randn,
  type Tensor,
  withBackend,
} from "../../../src/index.ts";
import { bytesOf } from "../../../src/tensor/dtype.ts";

const TOKENS = 64;
const options = {
  ...({ vocabularySize: 32_000, contextLength: 1024, heads: 32, keyValueHeads: 8, width: 2048 } as const),
  ...({ hidden: 8192, tied: true } as const),
};
const layers = Number(process.argv[2] ?? 16);

function copyOf(weights: Tensor | QuantizedTensor): Tensor | QuantizedTensor {
  if (!QuantizedTensor.isQuantized(weights)) return weights.clone();
  const { format, shape, dtype, parts } = weights;
  const { packed, scales, biases } = parts;
  return new QuantizedTensor(format, shape, dtype, {
    packed: packed.clone(),
    scales: scales?.clone(),
    biases: biases?.clone(),
  });
}

const bytesIn = (tensor: Tensor | QuantizedTensor): number =>
  QuantizedTensor.isQuantized(tensor) ? tensor.byteLength : tensor.size * bytesOf(tensor.dtype);

/** All blocks have copies of the same random weights, which saves time. */
function makeLlama(): { model: nn.Llama; bytes: number } {
  const generator = new Generator(3);
  const one = new nn.Llama({ ...options, layers: 1, generator });
  nn.quantizeModel(one, { format: "q4_0" });
  const state = Object.entries(one.quantizedState()).flatMap(([name, tensor]) =>
    name.startsWith("blocks.0.")
      ? Array.from({ length: layers }, (_, at) => [name.replace("blocks.0.", `blocks.${at}.`), copyOf(tensor)] as const)
      : [[name, tensor] as const],
  );
  const model = new nn.Llama({ ...options, layers, generator });
  nn.loadQuantized(model, Object.fromEntries(state));
  return { model: model.eval(), bytes: state.reduce((sum, [, tensor]) => sum + bytesIn(tensor), 0) };
}

async function secondsPerToken(model: nn.Llama): Promise<number> {
  const prompt = Array.from({ length: 32 }, (_, at) => (at * 7919) % options.vocabularySize);
  let [first, count] = [0, 0];
  for await (const _ of nn.generate(model, prompt, { temperature: 0, maxTokens: TOKENS + 1 }))
    if (count++ === 0) first = performance.now();
  return (performance.now() - first) / 1000 / TOKENS;
}

/** Returns the bytes that a copy reads and writes per second. */
function copySpeed(): number {
  const x = randn([2 ** 26]);
  const wait = () => getBackend() === "metal" && metalContext().wait();
  const seconds = Array.from({ length: 8 }, () => {
    wait();
    const start = performance.now();
    for (let copy = 0; copy < 8; copy++) x.clone().dispose();
    wait();
    return (performance.now() - start) / 1000 / 8;
  });
  return (2 * bytesIn(x)) / Math.min(...seconds);
}

if (getBackend() === "metal") metalContext().configure("storage", "private");
const { model, bytes } = noGrad(() => withBackend("cpu", makeLlama));
await secondsPerToken(model);
const seconds = Math.min(await secondsPerToken(model), await secondsPerToken(model), await secondsPerToken(model));
const [speed, copy] = [bytes / seconds, copySpeed()];
console.log(
  `${getBackend()}: ${(bytes / 1e6).toFixed(0)} MB of weights, ${(1 / seconds).toFixed(1)} tokens/s, ` +
    `${(speed / 1e9).toFixed(1)} GB/s of weights, ${(speed / copy).toFixed(3)} of a copy's ` +
    `${(copy / 1e9).toFixed(0)} GB/s`,
);
