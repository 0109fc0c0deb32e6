/** Real inputs of the models of onnx_models.ts: speech by a synthesizer, notes, drawn pictures with text, and files. */
import { join } from "node:path";
import { loadKinds, tokensOf } from "../../examples/file_kind_model.ts";
import { npmPackage } from "../../examples/packages.ts";
import { cat, interpolate, io, manualSeed, randn, signal, Tensor, tensor, zeros } from "../../src/index.ts";
import { toPng } from "../../src/train/curve.ts";

export type Inputs = Readonly<Record<string, Tensor>>;

/** Returns the inputs of the next run, from the results of the last one; undefined after the last run. */
export type Source = (step: number, results: Inputs) => Inputs | undefined;

const RATE = 16_000;

interface Synthesizer {
  loadConfig(config: unknown): void;
  loadVoice(voice: unknown): void;
  speak(sentence: string, options: { readonly rawdata: "buffer" }): Uint8Array;
}

/** Speech between noise and silence, at 16 kHz, as the synthesizer mespeak writes it into a WAV file. */
export async function speech(): Promise<Tensor> {
  const folder = npmPackage("mespeak@2.0.2");
  const synthesizer: Synthesizer = require(folder);
  synthesizer.loadConfig(require(join(folder, "src", "mespeak_config.json")));
  synthesizer.loadVoice(require(join(folder, "voices", "en", "en-us.json")));
  const wav = synthesizer.speak("This is speech, and the model finds it.", { rawdata: "buffer" });
  const { samples, sampleRate } = await io.loadAudio(new Uint8Array(wav));
  manualSeed(1);
  const noise = randn([RATE / 2]).mul(0.01);
  return cat([noise, signal.resample(samples.select(0, 0), sampleRate, RATE), zeros([RATE / 2])]);
}

/** Notes that begin one after the other, at 22,050 Hz. */
function notes(length: number): Tensor {
  const sample = (at: number): number =>
    [262, 330, 392, 523].reduce((sum, frequency, note) => {
      const since = at - note * 8000;
      const tone = Math.sin((2 * Math.PI * frequency * since) / 22_050);
      return since < 0 ? sum : sum + 0.3 * Math.exp(-since / 8000) * tone;
    }, 0);
  return tensor(Float32Array.from({ length }, (_, at) => sample(at)));
}

/** A drawn picture with lines of text, uint8 [3, 480, 960]. */
async function picture(): Promise<Tensor> {
  const lines = ["Orchard Cafe", "Apple pie with cream 4.50", "Two slices of plum cake 5.80", "OPEN 9-18"];
  const texts = lines.map((line, at) => `<text x="60" y="${90 + 100 * at}" font-size="40">${line}</text>`);
  return io.loadImage(
    await toPng(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 480" font-family="Inter">
<rect width="960" height="480" fill="#fefce8"/><circle cx="820" cy="150" r="90" fill="#fca5a5"/>
${texts.join("\n")}
</svg>`),
  );
}

/** Resizes a part of a picture, and maps 0 to `low` and 255 to 1. */
const scaled = (image: Tensor, size: readonly [number, number], low: number): Tensor =>
  interpolate(
    image
      .to("float32")
      .mul((1 - low) / 255)
      .add(low)
      .unsqueeze(0),
    { size: [...size], mode: "bilinear", alignCorners: false },
  );

/** Runs once for each of the inputs. */
const each =
  (inputs: readonly Inputs[]): Source =>
  (step) =>
    inputs[step];

/** Windows of speech, each with the state that the last run returned. `names` maps states to results. */
function windows(wave: Tensor, size: number, fixed: Inputs, names: Readonly<Record<string, string>>): Source {
  const count = Math.floor((wave.shape[0] - size) / 512);
  return (step, results) => {
    if (step >= count) return undefined;
    const states = Object.entries(names).map(([state, result]) => [state, results[result] ?? fixed[state]]);
    return { ...fixed, ...Object.fromEntries(states), input: wave.narrow(0, step * 512, size).unsqueeze(0) };
  };
}

async function files(): Promise<Inputs[]> {
  const { settings } = await loadKinds();
  const root = join(import.meta.dir, "..", "..");
  const names = ["README.md", "package.json", "src/index.ts", "bench/support/onnx.py", "kernels/common/functions.h"];
  return Promise.all(
    [...names, "LICENSE"].map(async (name) => {
      const tokens = tokensOf(await Bun.file(join(root, name)).bytes(), settings);
      return { bytes: tensor(tokens, { shape: [1, tokens.length], dtype: "int32" }) };
    }),
  );
}

/** Returns the inputs of each model, by its name in `packageModels`. */
export async function realInputs(): Promise<Readonly<Record<string, Source>>> {
  const [wave, image] = [await speech(), await picture()];
  const line = (at: number) => image.narrow(1, 45 + 100 * at, 60).narrow(2, 50, 500);
  const sr = tensor(BigInt(RATE), { dtype: "int64" });
  const silero = { sr, state: zeros([2, 1, 128]) };
  const gray = (part: Tensor, size: readonly [number, number]) => scaled(part, size, 0).mean(1, true);
  const second = wave.narrow(0, RATE / 2, RATE).unsqueeze(0);
  return {
    "silero-vad": windows(wave, 576, silero, { state: "stateN" }),
    "silero-vad 16 kHz": windows(wave, 576, { h: zeros([1, 1, 128]), c: zeros([1, 1, 128]) }, { h: "hn", c: "cn" }),
    "silero-vad, no If": windows(wave, 576, silero, { state: "stateN" }),
    magika: each(await files()),
    "rapidocr, direction": each([0, 1, 2, 3].map((at) => ({ x: scaled(line(at).flip([1, 2]), [48, 192], -1) }))),
    "rapidocr, recognition": each([0, 1, 2, 3].map((at) => ({ x: scaled(line(at), [48, 400], -1) }))),
    "rapidocr, detection": each([{ x: scaled(image, [480, 960], -1) }]),
    nudenet: each([{ images: scaled(image, [320, 320], 0) }]),
    "basic-pitch": each([{ "serving_default_input_2:0": notes(43_844).reshape([1, 43_844, 1]) }]),
    "ddddocr, captchas": each([0, 3].map((at) => ({ input1: gray(line(at), [64, 192]) }))),
    "ddddocr, detection": each([{ images: scaled(image, [416, 416], 0).mul(255) }]),
    "openwakeword, spectrogram": each([{ input: second.mul(32_767) }]),
    "openwakeword, embedding": each([
      {
        input_1: signal
          .spectrogram(second.select(0, 0), { nFft: 62, hopLength: 208 })
          .t()
          .narrow(0, 0, 76)
          .reshape([1, 76, 32, 1]),
      },
    ]),
  };
}

/**
 * For each output: the most probable class of each row, if it has two or three axes, and whether each element exceeds
 * 0.5.
 */
export function decisionsOf(results: Inputs): number[] {
  return Object.values(results).flatMap((x) => {
    if (!(x instanceof Tensor)) return [];
    const classes =
      (x.rank === 2 || x.rank === 3) && x.shape.at(-1)! > 1 ? [...x.argmax(-1).flatten().dataSync()].map(Number) : [];
    return [...classes, ...[...x.gt(0.5).flatten().dataSync()].map(Number)];
  });
}
