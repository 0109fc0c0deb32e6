/** Small models to serve: random weights, bytes as tokens. */
import { data, Generator, nn } from "../../src/index.ts";
import type { ServedModel } from "../../src/serve/served_model.ts";
import { ModelServer } from "../../src/serve/server.ts";
import type { ServerOptions } from "../../src/serve/server_options.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { waitFor } from "../support/wait.ts";

const sizes = { vocabularySize: 256, contextLength: 256, layers: 2, heads: 4, keyValueHeads: 2, width: 32 } as const;

/** The initial weights are larger than usual, so that each prompt has a different text. */
export const randomLlama = (): nn.Llama =>
  new nn.Llama({ ...sizes, generator: new Generator(9), initialization: nn.llamaInitialization(0.4) });

/** Tokens that are not ASCII are never generated, so that texts are valid for any weights. */
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

export const start = async (
  options: ServerOptions = {},
  model?: nn.LanguageModel,
  defaults?: ServedModel["defaults"],
): Promise<ModelServer> => ModelServer.start({ ...served(model), defaults }, { port: 0, ...options });

/** Lets a model compute this many times; later results wait until the returned function is called. */
export function holdAfter(model: nn.Llama, calls: number): () => void {
  const gate = Promise.withResolvers<void>();
  model.forward = (tokens, inputs) => {
    const logits = nn.Llama.prototype.forward.call(model, tokens, inputs);
    if (calls-- > 0) return logits;
    const data = logits.data.bind(logits);
    return Object.defineProperty(logits, "data", { value: () => gate.promise.then(() => data()) });
  };
  return () => {
    restoreModel(model);
    gate.resolve();
  };
}

/** Undoes {@link holdAfter} for later computations of the model. */
export const restoreModel = (model: nn.Llama): boolean => Reflect.deleteProperty(model, "forward");

/** Waits until a server's `/metrics` match. */
export async function showsFigures(
  { url }: ModelServer,
  pattern: RegExp,
  headers: Record<string, string> = {},
): Promise<string> {
  const figures = async () => (await fetch(`${url}/metrics`, { headers })).text();
  const matching = async () => {
    const text = await figures();
    return pattern.test(text) ? text : undefined;
  };
  return waitFor(`/metrics to match ${pattern}`, matching, { state: figures });
}

/** The text that the model generates greedily without a server. */
export async function textAlone(model: nn.LanguageModel, prompt: string, maxTokens: number): Promise<string> {
  const tokens: number[] = [];
  for await (const token of nn.generate(model, tokenizer.encode(prompt), { maxTokens, temperature: 0 }))
    tokens.push(token);
  return tokenizer.decode(tokens);
}
