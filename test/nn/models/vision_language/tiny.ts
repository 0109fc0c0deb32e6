/** A small vision-language model with random weights, and the processor of a folder. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { Generator, nn } from "../../../../src/index.ts";
import { Settings } from "../../../../src/nn/models/loading/settings.ts";
import {
  describeVisionLanguage,
  type VisionLanguageName,
} from "../../../../src/nn/models/loading/vision_language/describe.ts";
import { VisionLanguageModel } from "../../../../src/nn/models/vision_language/model.ts";

interface Part {
  readonly type: "image" | "text";
  readonly text?: string;
}

/** A model's folder, a chat, and the prompt that `transformers` makes from it. */
export interface PromptCase {
  readonly files: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly template: string;
  readonly chat: readonly { readonly role: string; readonly content: readonly Part[] }[];
  readonly images: readonly (readonly number[])[];
  readonly tokens: readonly number[];
}

/** The path of the fixture without its extension: scripts/fixtures/models/chat_prompts.py. */
export const promptFixture = join(packageRoot, "test", "fixtures", "vision_language", "prompts");
interface TokenizerFile {
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
  readonly added_tokens: readonly { readonly id: number; readonly content: string }[];
}
const contents: { tokenizer: TokenizerFile; cases: readonly PromptCase[] } = JSON.parse(
  readFileSync(`${promptFixture}.json`, "utf8"),
);
export const promptCases = contents.cases;
export const promptTokenizer = contents.tokenizer;

/** Writes the files of a model without weights. */
export function writeFiles(path: string, { files, template }: Pick<PromptCase, "files" | "template">): void {
  mkdirSync(path, { recursive: true });
  for (const [file, json] of Object.entries({ ...files, "tokenizer.json": contents.tokenizer }))
    writeFileSync(join(path, file), JSON.stringify(json));
  writeFileSync(join(path, "chat_template.jinja"), template);
}

/** Returns a model with random weights: larger ones than initialized, so that each prompt has a different text. */
export function modelOf(own: PromptCase, vocabularySize: number): nn.VisionLanguageModel {
  const config = structuredClone(own.files["config.json"]) as { text_config: { vocab_size: number } };
  config.text_config.vocab_size = vocabularySize; // so that every token has a text
  const settings = new Settings("config.json", new Map(Object.entries(config)));
  const family = own.files["config.json"]["model_type"] as VisionLanguageName;
  const description = describeVisionLanguage(family, settings, () => true);
  const options = { generator: new Generator(3), initialization: nn.llamaInitialization(0.4) };
  return new VisionLanguageModel(description, options).eval();
}

/** Returns a model of a family and its processor, whose files it writes to a folder. */
export function tinyModel(
  path: string,
  family: VisionLanguageName,
): { readonly model: nn.VisionLanguageModel; readonly processor: nn.ChatProcessor } {
  const own = promptCases.find(({ files }) => files["config.json"]["model_type"] === family)!;
  writeFiles(path, own);
  const processor = nn.loadChatProcessor(path);
  return { model: modelOf(own, processor.tokenizer.vocabularySize), processor };
}
