/** Options, errors and formats of transcripts, and properties that hold without a reference. */
import { beforeAll, describe, expect, test } from "bun:test";
import { packageRoot } from "../../../src/core/paths.ts";
import {
  Generator,
  nn,
  noGrad,
  OrchardError,
  signal,
  type Tensor,
  tensor,
  withBackend,
  withStrict,
  zeros,
} from "../../../src/index.ts";
import { addWords, type TimedWord, type WordSegment } from "../../../src/nn/speech/words.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";
import { programsOf, promisedText } from "../../support/readme.ts";
import { errorOf, weight } from "../models/encoder/oracle.ts";
import { audio, fixture, loadSpeech } from "./oracle.ts";

const folder = testFolder("behavior");
const many = fixture.models.find(({ english, timestamps, segments }) => !english && timestamps && segments.length > 2)!;
const english = fixture.models.find((each) => each.english)!;
const greedy = { temperature: 0, maxTokens: many.maxTokens, language: "de" };
let model: nn.Whisper;
let onlyEnglish: nn.Whisper;
const recording = tensor(audio(many.audio));

beforeAll(async () => {
  model = await loadSpeech(folder.file("many"), many);
  onlyEnglish = await loadSpeech(folder.file("english"), english);
});

test("recordings in a batch have the transcripts that they have alone", async () => {
  const recordings = [0, 1, 2].map((at) => tensor(audio({ seed: at, samples: 9000 + 11_000 * at })));
  const options = { ...greedy, language: undefined };
  const alone = await Promise.all(recordings.map((each) => nn.transcribe(model, each, options)));
  for (const batch of [2, 8]) {
    const together = await nn.transcribe(model, recordings, { ...options, batch });
    for (const [at, { segments, ...rest }] of together.entries()) {
      const { segments: wanted, ...others } = alone[at];
      expect(rest).toEqual(others);
      expect(segments.map(({ tokens }) => tokens)).toEqual(wanted.map(({ tokens }) => tokens));
    }
  }
});

test("channels are averaged, and other rates are converted", async () => {
  const options = { ...greedy, noSpeechThreshold: Infinity };
  const alone = await nn.transcribe(model, recording, options);
  const halves = recording.mul(0.5).unsqueeze(0);
  const channels = tensor([0.5, 1.5]).unsqueeze(1).mul(halves).mul(1);
  const stereo = await nn.transcribe(model, { samples: channels as Tensor<"float32">, sampleRate: 16_000 }, options);
  const half = await nn.transcribe(model, recording.mul(0.5), options);
  expect(stereo.segments.map(({ tokens }) => tokens)).toEqual(half.segments.map(({ tokens }) => tokens));
  const slower = signal.resample(recording, 16_000, 24_000);
  const { duration } = await nn.transcribe(model, slower, { ...options, sampleRate: 24_000 });
  expect(duration).toBeCloseTo(alone.duration, 4);
});

test("sample rates below those of speech are rejected before resampling, as an option and in audio", async () => {
  const samples = recording as Tensor<"float32">;
  for (const sampleRate of [0.5, 1, 999, 8000.5, NaN, Infinity]) {
    await expect(nn.transcribe(model, samples, { ...greedy, sampleRate })).rejects.toThrow("from 1000 to 16777216");
    await expect(nn.transcribe(model, { samples, sampleRate }, greedy)).rejects.toThrow("from 1000 to 16777216");
  }
});

test("a window that fails is decoded at the next temperature", async () => {
  const temperatures = async (options: nn.TranscribeOptions) => {
    const generator = new Generator(1);
    const { segments } = await nn.transcribe(model, recording, { ...greedy, generator, ...options });
    return new Set(segments.map(({ temperature }) => temperature));
  };
  const never = { compressionRatioThreshold: Infinity, logProbabilityThreshold: -Infinity, temperature: [0, 0.5] };
  expect(await temperatures(never)).toEqual(new Set([0]));
  expect(await temperatures({ ...never, logProbabilityThreshold: 0 })).toEqual(new Set([0.5]));
  expect(await temperatures({ ...never, compressionRatioThreshold: 1e-9 })).toEqual(new Set([0.5]));
  // a silent window does not fail, and has no segments
  expect(await temperatures({ ...never, logProbabilityThreshold: 0, noSpeechThreshold: 1e-9 })).toEqual(new Set());
});

test("a prompt is cut at its start to less than half of the context", async () => {
  const end = "the last forty-six characters of a long prompt"; // 47 tokens with the space before them
  expect(end).toHaveLength(many.config.max_target_positions / 2 - 2);
  const chances = async (initialPrompt: string) => {
    const { segments } = await nn.transcribe(model, recording, { ...greedy, initialPrompt });
    return segments.map(({ averageLogProbability }) => averageLogProbability);
  };
  const wanted = await chances(end);
  expect(await chances(`and before it ${end}`)).toEqual(wanted);
  expect(await chances(end.slice(1))).not.toEqual(wanted);
});

test("equal generators give equal transcripts, and another seed a different one", async () => {
  const drawn = (seed: number) =>
    nn.transcribe(model, recording, { ...greedy, temperature: 1, generator: new Generator(seed) });
  const [first, again, other] = [await drawn(1), await drawn(1), await drawn(2)];
  expect(again).toEqual(first);
  expect(other.text).not.toBe(first.text);
});

test("words make up the text, and their times do not decrease", async () => {
  const { segments } = await nn.transcribe(model, recording, { ...greedy, wordTimestamps: true });
  expect(segments.length).toBeGreaterThan(0);
  for (const { words = [], text } of segments) {
    expect(words.map(({ word }) => word).join("")).toBe(text);
    for (const [at, { start, end, probability }] of words.entries()) {
      expect(end).toBeGreaterThanOrEqual(start);
      expect(start).toBeGreaterThanOrEqual(words[at - 1]?.start ?? 0);
      expect(probability).toBeWithin(0, 1);
    }
  }
});

test("words after a pause and around sentences are shortened", () => {
  const word = (text: string, start: number, end: number): TimedWord => ({
    word: text,
    tokens: [1],
    start,
    end,
    probability: 1,
  });
  const words = [word(" a", 0, 3), word(" b", 3, 3.2), word(".", 3.2, 4), word(" c", 4, 4.2), word(" d", 4.2, 4.4)];
  const segment: WordSegment = { start: 0, end: 4.5, tokens: [1, 1, 1, 1, 1] };
  addWords([segment], words, { offset: 10, lastSpeech: 10, endToken: 256 });
  // the median of the lengths 3, 0.2, 0.8, 0.2 and 0.2 is 0.2: the mark has at most 0.4, the first word too
  expect(segment.words!.map(({ word: text, start, end }) => [text, +start.toFixed(2), +end.toFixed(2)])).toEqual([
    [" a", 12.6, 13],
    [" b.", 13, 13.2],
    [" c", 14, 14.2],
    [" d", 14.2, 14.4],
  ]);
  expect([segment.start, segment.end]).toEqual([12.6, 14.4]);
});

test("features of long audio match its parts", () => {
  const samples = weight("long", [160 * 6100]);
  const logs = (x: Tensor) => nn.logMelFeatures(x).mul(4).sub(4);
  const [first, count] = [5990, 20];
  const whole = logs(samples).narrow(1, first, count);
  const part = logs(samples.narrow(0, 160 * (first - 10), 160 * (count + 20))).narrow(1, 10, count);
  expect(errorOf(whole, part)).toBeLessThan(1e-5);
});

test("features and resampling need no fallback on Metal, which has no float64", () => {
  const x = tensor(audio({ seed: 1, samples: 4000 }));
  for (const compute of [() => nn.logMelFeatures(x), () => signal.resample(x, 3, 2)])
    expect(
      errorOf(
        withStrict(true, () => withBackend("metal", compute)),
        compute(),
      ),
    ).toBe(0);
});

test("features of a batch equal those of its rows", () => {
  const rows = [1, 2].map((seed) => tensor(audio({ seed, samples: 4000 })));
  const both = nn.logMelFeatures(tensor(rows.map((row) => Array.from(row.dataSync(), Number))));
  for (const [at, row] of rows.entries()) expect(errorOf(both.select(0, at), nn.logMelFeatures(row))).toBe(0);
});

describe("transcripts are written in several formats", () => {
  const chances = { averageLogProbability: 0, compressionRatio: 1, noSpeechProbability: 0, temperature: 0 };
  const segment = (start: number, end: number, text: string) => ({
    id: 0,
    seek: 0,
    start,
    end,
    text,
    tokens: [1],
    ...chances,
  });
  const transcript = (...segments: ReturnType<typeof segment>[]): nn.Transcription => ({
    text: "",
    language: "en",
    task: "transcribe",
    duration: 1,
    segments,
  });

  test("times are rounded to milliseconds", () => {
    const draws = new Generator(5);
    for (let seconds = 0.0004; seconds < 90_000; seconds = 1.7 * seconds + Number(draws.seed) / 7) {
      const iso = new Date(Math.round(1000 * seconds)).toISOString();
      const hours = `${Math.floor(Math.round(1000 * seconds) / 3_600_000)}`.padStart(2, "0");
      const wanted = `${hours}${iso.slice(13, 23)}`;
      const given = transcript(segment(seconds, seconds, " a"));
      expect(nn.formatTranscription(given, "srt")).toBe(
        `1\n${wanted.replace(".", ",")} --> ${wanted.replace(".", ",")}\na\n\n`,
      );
      const short = hours === "00" ? wanted.slice(3) : wanted;
      expect(nn.formatTranscription(given, "vtt")).toBe(`WEBVTT\n\n${short} --> ${short}\na\n\n`);
    }
  });

  test("an arrow in a text does not end a subtitle; lines, numbers and JSON are kept", () => {
    const given = transcript(segment(0, 1, " a --> b"), segment(1, 2, " c"));
    expect(nn.formatTranscription(given, "srt")).toBe(
      "1\n00:00:00,000 --> 00:00:01,000\na -> b\n\n2\n00:00:01,000 --> 00:00:02,000\nc\n\n",
    );
    expect(nn.formatTranscription(given, "txt")).toBe("a --> b\nc\n");
    expect(JSON.parse(nn.formatTranscription(given, "json"))).toEqual(given);
    expect(() => nn.formatTranscription({} as never, "txt")).toThrow("expected the result of transcribe");
  });
});

test("invalid arguments are rejected", async () => {
  const code = (body: () => unknown) =>
    Promise.try(body).then(
      () => "none",
      (error: unknown) => (error instanceof OrchardError ? error.code : String(error)),
    );
  const cases: [string, () => unknown][] = [
    ["unknownLanguage", () => nn.transcribe(model, recording, { language: "fr" })],
    ["unknownLanguage", () => nn.transcribe(onlyEnglish, recording, { language: "de" })],
    ["noTranslation", () => nn.transcribe(onlyEnglish, recording, { task: "translate" })],
    ["noTemperature", () => nn.transcribe(model, recording, { temperature: [] })],
    ["noTimestamps", () => nn.transcribe(model, recording, { timestamps: false, wordTimestamps: true })],
    ["notFloat", () => nn.transcribe(model, zeros([400], { dtype: "int32" }))],
    ["wrongShape", () => nn.transcribe(model, zeros([1, 1, 400]))],
    ["notFound", () => nn.transcribe(model, folder.file("none.wav"))],
    ["notFloat", () => nn.logMelFeatures(zeros([400], { dtype: "int32" }))],
    ["wrongShape", () => nn.logMelFeatures(zeros([200]))],
    ["wrongShape", () => model.encode(zeros([1, 2, 3]))],
    ["sequenceTooLong", () => model.decode(zeros([1, 97], { dtype: "int32" }), zeros([1, 50, 16]))],
    ["notFloat", () => signal.resample(zeros([4], { dtype: "int32" }), 2, 1)],
    ["wrongRank", () => signal.resample(zeros([]), 2, 1)],
    ["noGradient", () => signal.resample(zeros([4], { requiresGrad: true }), 2, 1)],
  ];
  for (const [at, [wanted, body]] of cases.entries()) expect([at, await code(body)]).toEqual([at, wanted]);
  const stop = AbortSignal.abort(new Error("stopped"));
  expect(nn.transcribe(model, recording, { signal: stop })).rejects.toThrow("stopped");
});

test("a folder whose generation_config.json lacks languages has those of its tokenizer", async () => {
  const { lang_to_id: _, task_to_id: __, prev_sot_token_id: ___, ...generation } = many.generation;
  const { settings } = await loadSpeech(folder.file("older"), { ...many, generation });
  expect(settings).toEqual(model.settings!);
  const { is_multilingual: ____, ...unnamed } = generation;
  const small = await loadSpeech(folder.file("oldest"), { ...many, generation: unnamed });
  expect([small.settings!.languages.size, small.settings!.tasks.size]).toEqual([0, 0]); // a small vocabulary: English
});

test("speech models with quantized weights transcribe", async () => {
  const wide = { ...many, config: { ...many.config, d_model: 32 } };
  const exact = await loadSpeech(folder.file("wide"), wide);
  const { model: quantized, report } = await nn.loadModel<nn.Whisper>(folder.file("wide"), { quantize: "q8_0" });
  expect(Object.keys(report.formats).sort()).toEqual(["float32", "q8_0"]);
  const features = weight("features", [1, many.config.num_mel_bins, exact.windowFrames]);
  const tokens = tensor([[257, 258, 70, 71]], { dtype: "int32" });
  const [got, wanted] = [quantized, exact].map((each) => noGrad(() => each.forward(features, tokens))) as [
    Tensor,
    Tensor,
  ];
  expect(errorOf(got, wanted)).toBeWithin(1e-6, 0.05);
});

test.each(programsOf("docs/speech.md"))("the program of docs/speech.md runs: $title", (example) => {
  const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", example.program], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  expect([stdout.toString().trimEnd(), stderr.toString()]).toEqual([promisedText(example).trimEnd(), ""]);
});
