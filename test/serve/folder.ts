/** A model folder as users download it: config, weights, tokenizer, chat template. */
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { Generator, io, nn } from "../../src/index.ts";

const sizes = { vocabularySize: 603, contextLength: 256, layers: 2, heads: 4, keyValueHeads: 2, width: 32, hidden: 64 };

const config = {
  model_type: "llama",
  architectures: ["LlamaForCausalLM"],
  hidden_act: "silu",
  rms_norm_eps: 1e-5,
  vocab_size: 603,
  max_position_embeddings: 256,
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  tie_word_embeddings: false,
  rope_theta: 10_000,
  torch_dtype: "float32",
  bos_token_id: 600,
  eos_token_id: 601,
};

const template =
  "{{ bos_token }}{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";

/** Writes a small random Llama with a tokenizer like Llama 3's. */
export async function writeModel(folder: string): Promise<void> {
  const path = join(packageRoot, "test", "fixtures", "text", "llama3.json");
  const { tokenizer, config: tokenizerConfig } = (await Bun.file(path).json()) as Record<string, object>;
  const write = (name: string, value: unknown) => Bun.write(join(folder, name), JSON.stringify(value));
  await write("config.json", config);
  await write("tokenizer.json", tokenizer);
  await write("tokenizer_config.json", { ...tokenizerConfig, chat_template: template });
  const model = new nn.Llama({ ...sizes, generator: new Generator(4), initialization: nn.llamaInitialization(0.4) });
  await io.saveSafetensors(join(folder, "model.safetensors"), model.huggingFaceState());
}
