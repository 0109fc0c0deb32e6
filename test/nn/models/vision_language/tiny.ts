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

/** A folder of a model, a chat, and its prompt by `transformers`. */
export interface PromptCase {
  readonly files: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly template: string;
  readonly chat: readonly { readonly role: string; readonly content: readonly Part[] }[];
  readonly images: readonly (readonly number[])[];
  readonly tokens: readonly number[];
}

/** The path of the fixture without its extension: scripts/fixtures/models/chat_prompts.py. */
export const promptFixture = join(packageRoot, "test", "fixtures", "vision_language", "prompts");
const contents: { tokenizer: object; cases: readonly PromptCase[] } = JSON.parse(
  readFileSync(`${promptFixture}.json`, "utf8"),
);
export const promptCases = contents.cases;

/** Writes the files of a model without weights. */
export function writeFiles(path: string, { files, template }: Pick<PromptCase, "files" | "template">): void {
  mkdirSync(path, { recursive: true });
  for (const [file, json] of Object.entries({ ...files, "tokenizer.json": contents.tokenizer }))
    writeFileSync(join(path, file), JSON.stringify(json));
  writeFileSync(join(path, "chat_template.jinja"), template);
}

/** Returns a model of a family, with larger weights than initialized ones so that each prompt has a different text. */
export function tinyModel(
  path: string,
  family: VisionLanguageName,
): {
  readonly model: nn.VisionLanguageModel;
  readonly processor: nn.ChatProcessor;
} {
  const own = promptCases.find(({ files }) => files["config.json"]!["model_type"] === family)!;
  writeFiles(path, own);
  const processor = nn.loadChatProcessor(path);
  const config = structuredClone(own.files["config.json"]!) as { text_config: { vocab_size: number } };
  config.text_config.vocab_size = processor.tokenizer.vocabularySize; // so that every token has a text
  const settings = new Settings("config.json", new Map(Object.entries(config)));
  const description = describeVisionLanguage(family, settings, () => true);
  const options = { generator: new Generator(3), initialization: nn.llamaInitialization(0.4) };
  return { model: new VisionLanguageModel(description, options).eval(), processor };
}
