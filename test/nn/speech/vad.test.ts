/**
 * Silence is cut before a recording is transcribed. Compares ranges with silero-vad, and tests that times refer to the
 * whole recording.
 */
import { beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { cat, nn, type Tensor, tensor, zeros } from "../../../src/index.ts";
import { restored, speechProbabilities, speechRanges } from "../../../src/nn/speech/silence.ts";
import { testFolder } from "../../support/folder.ts";
import { cases, writeCtcModel } from "./ctc_oracle.ts";
import { audio, fixture, loadSpeech } from "./oracle.ts";

interface Drawn {
  /** The probabilities of speech, in hundredths. */
  readonly probabilities: readonly number[];
  readonly samples: number;
  readonly ranges: readonly (readonly [start: number, end: number])[];
}

const { ranges: drawn }: { ranges: Drawn[] } = JSON.parse(
  readFileSync(join(packageRoot, "test", "fixtures", "speech", "vad.json"), "utf8"),
);
const folder = testFolder("vad");
const [STEP, SECOND] = [512, 16_000];

/** Hears speech wherever samples are not 0, and counts its calls in its state. */
const detector: nn.SpeechDetector = {
  async run({ input, state, sr }) {
    expect([input.shape, state.shape, sr.dtype]).toEqual([[1, 576], [2, 1, 128], "int64"]);
    const values = Array.from(input.dataSync() as ArrayLike<number>);
    const isSpeech = values.slice(64).some((value) => value !== 0);
    return { output: tensor([[isSpeech ? 0.9 : 0.1]]), stateN: state.add(1) };
  },
};

test.each(drawn.map((own, at) => [at, own] as const))("ranges of drawn probabilities equal silero's, %d", (_, own) => {
  const found = speechRanges(
    own.probabilities.map((hundredths) => hundredths / 100),
    own.samples,
  );
  expect(found.map(({ start, end }) => [start, end])).toEqual(own.ranges.map((range) => [...range]));
});

test("the detector gets 64 samples before each 512, and its state", async () => {
  const samples = Float32Array.from({ length: 1100 }, (_, at) => at + 1);
  const seen: number[][] = [];
  const states: number[] = [];
  const probabilities = await speechProbabilities(
    {
      run: async ({ input, state }) => {
        const values = Array.from(input.dataSync() as ArrayLike<number>);
        seen.push([values[0], values[63], values[64], values[575]]);
        states.push(Number(state.dataSync()[0]));
        return { output: tensor([[seen.length / 10]]), stateN: state.add(1) };
      },
    },
    samples,
  );
  expect(probabilities.map((value) => +value.toFixed(2))).toEqual([0.1, 0.2, 0.3]);
  expect(seen).toEqual([
    [0, 0, 1, 512],
    [449, 512, 513, 1024],
    [961, 1024, 1025, 0],
  ]);
  expect(states).toEqual([0, 1, 2]);
  const other = { run: async () => ({ probability: tensor([1]) }) };
  expect(speechProbabilities(other, samples)).rejects.toThrow("expected vad to be silero's silero_vad.onnx");
});

test("times of ranges become those of the recording", () => {
  const ranges = [
    { start: SECOND, end: 2 * SECOND },
    { start: 5 * SECOND, end: 7 * SECOND },
  ];
  const chances = { averageLogProbability: 0, compressionRatio: 1, noSpeechProbability: 0, temperature: 0 };
  const words = [
    { word: "a", start: 0.5, end: 1, probability: 1 },
    { word: "b", start: 1, end: 2.5, probability: 1 },
  ];
  const segment = { id: 0, seek: 0, start: 0.25, end: 3.5, text: "a b", tokens: [1], ...chances, words };
  const result = { text: "a b", language: "en", task: "transcribe", duration: 3, segments: [segment] } as const;
  const { duration, segments } = restored(result, ranges, 10);
  expect(duration).toBe(10);
  // a time after the last range becomes its end
  expect([segments[0].start, segments[0].end]).toEqual([1.25, 7]);
  expect(segments[0].words!.map(({ start, end }) => [start, end])).toEqual([
    [1.5, 2],
    [5, 6.5],
  ]);
});

let ctc: nn.Wav2Vec2;
beforeAll(async () => {
  await writeCtcModel(folder.file("ctc"), cases[0]);
  ctc = (await nn.loadModel<nn.Wav2Vec2>(folder.file("ctc"), { dtype: "float32" })).model;
});

test("a CTC model's words have the times of the recording", async () => {
  const before = 11 * STEP * 10; // 3.52 s
  const speech = tensor(audio({ seed: 3, samples: 8 * STEP }));
  const recording = cat([zeros([before]), speech, zeros([4 * SECOND])], 0) as Tensor;
  const found = await nn.transcribe(ctc, recording, { vad: detector, wordTimestamps: true });
  const padding = zeros([0.4 * SECOND]);
  const alone = await nn.transcribe(ctc, cat([padding, speech, padding], 0), { wordTimestamps: true });
  expect(found.text).toBe(alone.text);
  expect(found.duration).toBeCloseTo(recording.size / SECOND, 6);
  const wordsOf = ({ segments }: nn.Transcription) => segments.flatMap(({ words = [] }) => words);
  const shift = (before - 0.4 * SECOND) / SECOND;
  expect(wordsOf(alone).length).toBeGreaterThan(0);
  for (const [at, { word, start, end }] of wordsOf(alone).entries()) {
    const got = wordsOf(found)[at];
    expect(got.word).toBe(word);
    expect(got.start).toBeCloseTo(start + shift, 5);
    expect(got.end).toBeCloseTo(end + shift, 5);
  }
});

test("a recording without speech has no segments, also among others", async () => {
  const own = fixture.models.find(({ english }) => english)!;
  const whisper = await loadSpeech(folder.file("whisper"), own);
  const options = { temperature: 0, maxTokens: 4, noSpeechThreshold: Infinity };
  const speech = tensor(audio(own.audio));
  const [silent, loud] = await nn.transcribe(whisper, [zeros([3 * SECOND]), speech], { ...options, vad: detector });
  expect(silent).toEqual({ text: "", language: "und", task: "transcribe", duration: 3, segments: [] });
  const alone = await nn.transcribe(whisper, speech, options);
  expect(loud.segments.map(({ tokens }) => tokens)).toEqual(alone.segments.map(({ tokens }) => tokens));
});
