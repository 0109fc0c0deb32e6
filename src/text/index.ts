/** Tokenizers of models, and how chats are written. Exported as `text`. */
export { type ChatMessage, ChatTemplate, type RenderOptions, type TemplateTokens } from "./chat_template.ts";
