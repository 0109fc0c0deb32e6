/** Loads a model with its tokenizer and chat template. */
import { basename, resolve } from "node:path";
import { ArgumentError } from "../core/errors.ts";
import { type LoadModelOptions, loadModel } from "../nn/models/loading/load_model.ts";
import { loadLora } from "../nn/models/lora/peft.ts";
import { ChatTemplate } from "../text/chat_template.ts";
import { loadTokenizer } from "../text/load_tokenizer.ts";
import type { ServedModel } from "./served_model.ts";

/**
 * @param options options for loading the model, and the folder of an adapter in PEFT's format
 * @param name the model's name in the API. Default: the name of the folder or file.
 */
export async function loadServed(
  path: string,
  { adapter, ...options }: LoadModelOptions & { readonly adapter?: string | undefined } = {},
  name?: string,
): Promise<ServedModel> {
  const tokenizer = loadTokenizer(path); // before the weights, so that errors appear immediately
  const { model, generation, chatTemplate } = await loadModel(path, options);
  if (tokenizer.vocabularySize > model.vocabularySize) {
    const message = `expected a tokenizer of at most ${model.vocabularySize} tokens, the model's vocabulary, got`;
    throw new ArgumentError("loadModel", "otherTokenizer", `${message} ${tokenizer.vocabularySize} in ${path}`);
  }
  if (adapter !== undefined) loadLora(model, adapter);
  const { temperature, topK, topP, repetitionPenalty, stopTokens } = generation;
  return {
    name: name ?? basename(resolve(path)).replace(/\.gguf$/, ""),
    model,
    tokenizer,
    template: chatTemplate === undefined ? undefined : new ChatTemplate(chatTemplate, tokenizer.templateTokens),
    defaults: { temperature, topK, topP, repetitionPenalty },
    stopTokens,
  };
}
