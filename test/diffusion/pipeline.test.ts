/** The pipeline: pictures of `diffusers` from a small folder with the same noise, its tokenizer, and errors. */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadPromptTokenizer } from "../../src/diffusion/clip_tokenizer.ts";
import { autoencoderOptions, textEncoderOptions, unetOptions } from "../../src/diffusion/configs.ts";
import { diffusion, io, type Tensor } from "../../src/index.ts";
import { Settings } from "../../src/nn/models/loading/settings.ts";
import { weight } from "../nn/models/encoder/oracle.ts";
import { testFolder } from "../support/folder.ts";
import { fixture, readFixture, writePart } from "./oracle.ts";

interface Case {
  readonly kind: diffusion.SchedulerKind;
  readonly options: Readonly<Record<string, unknown>>;
  readonly prompt: string;
  readonly negativePrompt: string;
  readonly steps: number;
  readonly guidance: number;
  readonly width: number;
  readonly height: number;
}
const { configs, merges, index, prompts, cases } = readFixture<{
  configs: Readonly<Record<"unet" | "vae" | "text_encoder", Readonly<Record<string, unknown>>>>;
  merges: string[];
  index: Readonly<Record<string, unknown>>;
  prompts: { text: string; tokens: number[] }[];
  cases: Case[];
}>("pipeline.json");
const pictures = io.loadSafetensors(fixture("pictures.safetensors"));
const { path: folder } = testFolder("pipeline");

const settings = (config: object) => new Settings(undefined, new Map(Object.entries(config)));

/** The letters that stand for bytes in GPT-2's vocabulary. */
function byteLetters(): string[] {
  const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);
  const printed = [...range(33, 127), ...range(161, 173), ...range(174, 256)];
  return [...printed, ...range(256, 256 + 256 - printed.length)].map((code) => String.fromCodePoint(code));
}

function writeTokenizer(): void {
  const letters = byteLetters();
  const words = [
    ...letters,
    ...letters.map((letter) => `${letter}</w>`),
    ...merges.map((each) => each.replace(" ", "")),
  ];
  const vocab = [...words, "<|startoftext|>", "<|endoftext|>"].map((word, at) => [word, at]);
  mkdirSync(join(folder, "tokenizer"), { recursive: true });
  writeFileSync(join(folder, "tokenizer", "vocab.json"), JSON.stringify(Object.fromEntries(vocab)));
  writeFileSync(join(folder, "tokenizer", "merges.txt"), `#version: 0.2\n${merges.join("\n")}\n`);
}

const writeJson = (path: string, json: object) => writeFileSync(join(folder, path), JSON.stringify(json));
const writeScheduler = (options: object) => writeJson("scheduler/scheduler_config.json", options);

beforeAll(async () => {
  const models = {
    unet: new diffusion.UNet(unetOptions(settings(configs.unet))),
    vae: new diffusion.Autoencoder(autoencoderOptions(settings(configs.vae))),
    text_encoder: new diffusion.TextEncoder(textEncoderOptions(settings(configs.text_encoder))),
  };
  for (const part of ["unet", "vae", "text_encoder"] as const)
    await writePart(folder, part, { config: configs[part], model: models[part] });
  mkdirSync(join(folder, "scheduler"));
  writeTokenizer();
  writeJson("model_index.json", { _class_name: "StableDiffusionPipeline", ...index });
  writeScheduler(cases[0]!.options);
});

const distance = (a: Tensor, b: Tensor): number => Number(a.sub(b).abs().max().item());

describe("results of diffusers", () => {
  test.each(cases.map((each) => [each.kind, each] as const))("a picture with %s", async (kind, each) => {
    const { options, kind: _, ...own } = each;
    writeScheduler(options);
    const pipeline = await diffusion.loadPipeline(folder);
    expect(pipeline.scheduler.kind).toBe(kind);
    const noise = weight(`${kind}.noise`, [1, 4, 12, 8]).mul(2);
    const picture = await pipeline.generate({ ...own, noise, dtype: "float32" });
    expect(distance(picture, pictures[kind]!)).toBeLessThan(1e-3);
    expect(Number(pictures[kind]!.std().item())).toBeGreaterThan(0.05);
  });

  test("tokens of prompts", () => {
    const { tokenizer, padding } = loadPromptTokenizer(join(folder, "tokenizer"));
    for (const { text, tokens } of prompts) {
      const got = tokenizer.encodeInputs("test", text, { maxTokens: 12 }).tokens;
      expect([...got, ...Array<number>(12 - got.length).fill(padding)]).toEqual(tokens);
    }
  });
});
