/** Tokenizers, chat templates and constrained generation. Exported as `text`. */
export { type ChatMessage, ChatTemplate, type RenderOptions, type TemplateTokens } from "./chat_template.ts";
export { type ConstraintOptions, compileConstraint } from "./constraint/compile.ts";
export type { ConstrainedTokenizer } from "./constraint/held.ts";
export { loadTokenizer } from "./load_tokenizer.ts";
export type { TextSpan } from "./offsets.ts";
export {
  type DecodeOptions,
  type EncodedPair,
  type EncodeOptions,
  type EncodePairOptions,
  PretrainedTokenizer,
} from "./pretrained_tokenizer.ts";
