/** Prompts with images against `transformers`: tokens, and pixels within one step of a byte. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, type Tensor, tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { weight } from "../encoder/oracle.ts";
import { numbers } from "../loading/oracle.ts";

interface Part {
  readonly type: "image" | "text";
  readonly text?: string;
}

interface PromptCase {
  readonly files: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly template: string;
  readonly chat: readonly { readonly role: string; readonly content: readonly Part[] }[];
  readonly images: readonly (readonly number[])[];
  readonly tokens: readonly number[];
}

const fixture = join(packageRoot, "test", "fixtures", "vision_language", "prompts");
const { tokenizer, cases }: { tokenizer: object; cases: readonly PromptCase[] } = JSON.parse(
  readFileSync(`${fixture}.json`, "utf8"),
);
const pixels = io.loadSafetensors(`${fixture}.safetensors`);
const folder = testFolder("prompts");

function processorOf(name: string, { files, template }: Pick<PromptCase, "files" | "template">): nn.ChatProcessor {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  for (const [file, contents] of Object.entries({ ...files, "tokenizer.json": tokenizer }))
    writeFileSync(join(path, file), JSON.stringify(contents));
  writeFileSync(join(path, "chat_template.jinja"), template);
  return nn.loadChatProcessor(path);
}

/** The bytes that chat_prompts.py draws. */
function imageOf(index: number, shape: readonly number[]): Tensor {
  const bytes = numbers(weight(`image.${index}`, shape)).map((value) => Math.floor((value + 0.5) * 256));
  return tensor(Uint8Array.from(bytes), { shape: [...shape], dtype: "uint8" });
}

/** The smallest standard deviation of a channel, of OpenAI's models. */
const STEP = 1 / 255 / 0.26130258;

test.each(cases.map((own, index) => [`${own.files["config.json"]!["model_type"]} ${index}`, index, own] as const))(
  "%s",
  async (name, index, own) => {
    const processor = processorOf(name, own);
    let count = 0;
    const withImage = (part: Part) =>
      part.type === "image" ? { ...part, image: imageOf(count, own.images[count++]!) } : part;
    const chat = own.chat.map((message) => ({ ...message, content: message.content.map(withImage) }));
    const prompt = await processor.prompt(chat);
    expect(prompt.tokens).toEqual([...own.tokens]);
    const got = prompt.images.flatMap((image) => numbers(image.pixels));
    const want = numbers(pixels[`${index}`]!).slice(0, got.length);
    expect(got).toHaveLength(want.length);
    const farthest = got.reduce((most, value, at) => Math.max(most, Math.abs(value - want[at]!)), 0);
    // float16 rounds numbers below 4 by at most 2⁻¹⁰
    expect(farthest).toBeLessThan(1.001 * STEP + 2 ** -10);
  },
);
