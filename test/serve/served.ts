/** Small models to serve: random weights, bytes as tokens. */
import { data, Generator, nn } from "../../src/index.ts";
import type { ServedModel } from "../../src/serve/served_model.ts";
import { ModelServer, type ServerOptions } from "../../src/serve/server.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";

const sizes = { vocabularySize: 256, contextLength: 256, layers: 2, heads: 4, keyValueHeads: 2, width: 32 } as const;

/** Larger weights than models start with, so that each prompt has a text of its own. */
export const randomLlama = (): nn.Llama =>
  new nn.Llama({ ...sizes, generator: new Generator(9), initialization: nn.llamaInitialization(0.4) });

/** Tokens that are no ASCII never come, so that texts are valid whatever the weights say. */
export const tokenizer = new data.ByteTokenizer();

export const TEMPLATE =
  "{% for m in messages %}{% if m.role not in ['system', 'user', 'assistant'] %}" +
  "{{ raise_exception('no role ' + m.role) }}{% endif %}<{{ m.role }}>{{ m.content }}\n{% endfor %}" +
  "{% if add_generation_prompt %}<assistant>{% endif %}";

export const served = (model: nn.LanguageModel = randomLlama()): ServedModel => ({
  name: "tiny/llama",
  model,
  tokenizer,
  template: new ChatTemplate(TEMPLATE),
});

export const start = (
  options: ServerOptions = {},
  model?: nn.LanguageModel,
  defaults?: ServedModel["defaults"],
): ModelServer => new ModelServer({ ...served(model), defaults }, { port: 0, ...options });

/** The text that the model generates alone, greedily. */
export async function textAlone(model: nn.LanguageModel, prompt: string, maxTokens: number): Promise<string> {
  const tokens: number[] = [];
  for await (const token of nn.generate(model, tokenizer.encode(prompt), { maxTokens, temperature: 0 }))
    tokens.push(token);
  return tokenizer.decode(tokens);
}
