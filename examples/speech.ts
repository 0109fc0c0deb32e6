// Finds speech in a recording with silero's voice activity detector, an ONNX model. Writes a picture.
//
//   bun examples/speech.ts [speech.png] [recording.wav] [silero_vad.onnx]
//
// Without a recording, two sentences from the speech synthesizer mespeak on npm, between noise and a melody. Without a
// model, it uses the model of the package silero-vad on PyPI.
import { join } from "node:path";
import { cat, io, manualSeed, randn, signal, type Tensor, tensor, zeros } from "../src/index.ts";
import { npmPackage, pythonPackage } from "./packages.ts";
import { draw, numbersOf, save } from "./picture.ts";

const [path = "speech.png", recording, model] = process.argv.slice(2);
const RATE = 16_000;
/** The samples of a step, and the samples of context before it. */
const [STEP, CONTEXT] = [512, 64];

interface Synthesizer {
  loadConfig(config: unknown): void;
  loadVoice(voice: unknown): void;
  speak(sentence: string, options: { readonly rawdata: "buffer" }): Uint8Array;
}

function synthesizer(): Synthesizer {
  const folder = npmPackage("mespeak@2.0.2");
  const result: Synthesizer = require(folder);
  result.loadConfig(require(join(folder, "src", "mespeak_config.json")));
  result.loadVoice(require(join(folder, "voices", "en", "en-us.json")));
  return result;
}

async function spoken(by: Synthesizer, sentence: string): Promise<Tensor> {
  const { samples, sampleRate } = await io.loadAudio(new Uint8Array(by.speak(sentence, { rawdata: "buffer" })));
  return signal.resample(samples.select(0, 0), sampleRate, RATE);
}

/** Plays notes, each a fifth of a second. */
const melody = (frequencies: readonly number[]): Tensor =>
  tensor(
    frequencies.flatMap((frequency) =>
      Array.from(
        { length: RATE / 5 },
        (_, at) => 0.2 * Math.exp(-at / 2000) * Math.sin((2 * Math.PI * frequency * at) / RATE),
      ),
    ),
    { dtype: "float32" },
  );

async function scene(): Promise<Tensor> {
  manualSeed(1);
  const noise = (seconds: number) => randn([seconds * RATE]).mul(0.01);
  const tune = melody([523, 587, 659, 698, 784, 880, 988, 1047]);
  const speaker = synthesizer();
  const first = await spoken(speaker, "This is speech, and the model finds it.");
  const second = await spoken(speaker, "Music is not speech.");
  return cat([noise(1), first, noise(1), tune, noise(0.5), second, zeros([RATE])]);
}

async function loaded(file: string): Promise<Tensor> {
  const { samples, sampleRate } = await io.loadAudio(file);
  return signal.resample(samples.mean(0), sampleRate, RATE);
}

const samples = numbersOf(recording === undefined ? await scene() : await loaded(recording));
const detector = await io.loadOnnx(
  model ?? join(pythonPackage("silero-vad==6.2.3"), "silero_vad", "data", "silero_vad.onnx"),
);
const probabilities: number[] = [];
let state: Tensor = zeros([2, 1, 128]);
for (let start = 0; start < samples.length; start += STEP) {
  const input = new Float32Array(CONTEXT + STEP);
  const first = Math.max(0, start - CONTEXT);
  input.set(samples.slice(first, start + STEP), CONTEXT - (start - first));
  const sr = tensor(BigInt(RATE), { dtype: "int64" });
  const results = await detector.run({ input: tensor(input, { shape: [1, CONTEXT + STEP] }), state, sr });
  probabilities.push(numbersOf(results["output"] as Tensor)[0]);
  state = results["stateN"] as Tensor;
}

const seconds = (step: number) => (step * STEP) / RATE;
/** Returns ranges of steps with speech. Up to ten steps without speech do not end a range. */
const ranges: [from: number, to: number][] = [];
for (const [step, probability] of probabilities.entries()) {
  if (probability < 0.5) continue;
  const last = ranges.at(-1);
  if (last && step - last[1] <= 10) last[1] = step + 1;
  else ranges.push([step, step + 1]);
}
for (const [from, to] of ranges)
  console.log(`speech from ${seconds(from).toFixed(1)} s to ${seconds(to).toFixed(1)} s`);

const duration = samples.length / RATE;
await save(
  path,
  draw({
    title: "A recording, and the probability of speech in it",
    x: { title: "seconds", domain: [0, duration] },
    y: { title: "probability of speech; the wave is below", domain: [-1, 1] },
    marks(x, y) {
      const found = ranges.map(([from, to]) => {
        const [left, right] = [x(seconds(from)), x(seconds(to))];
        const [start, length] = [left.toFixed(1), (right - left).toFixed(1)];
        return `<rect x="${start}" y="${y(1)}" width="${length}" height="${y(-1) - y(1)}"/>`;
      });
      const columns = Array.from({ length: 800 }, (_, at) => {
        const part = samples.slice((at * samples.length) / 800, ((at + 1) * samples.length) / 800);
        const most = part.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
        const [low, high] = [y(-0.5 - most / 2), y(-0.5 + most / 2)];
        return `M${x((at * duration) / 800).toFixed(1)},${low.toFixed(1)}V${high.toFixed(1)}`;
      });
      const line = probabilities.map((value, step) => `${x(seconds(step)).toFixed(1)},${y(value).toFixed(1)}`);
      return [
        `<g fill="#f28e2b" fill-opacity="0.2">${found.join("")}</g>`,
        `<path d="${columns.join("")}" stroke="#4e79a7"/>`,
        `<polyline points="${line.join(" ")}" fill="none" stroke="#e15759" stroke-width="2"/>`,
      ].join("\n");
    },
  }),
);
