/**
 * A chat with a model in a dozen lines: `bun examples/chat.ts FOLDER`, or a `.gguf` file. Each line of input is a
 * message.
 */
import { nn, text } from "../src/index.ts";

const [path = "model"] = process.argv.slice(2);
const [tokenizer, { model, chatTemplate = "" }] = [text.loadTokenizer(path), await nn.loadModel(path)];
const template = new text.ChatTemplate(chatTemplate, tokenizer.templateTokens);
const messages: text.ChatMessage[] = [];
for await (const content of console) {
  messages.push({ role: "user", content });
  const tokens = tokenizer.encode(template.render(messages), { addSpecialTokens: false });
  const answer = await Array.fromAsync(nn.generateText(model, tokenizer, tokens, { temperature: 0.7, maxTokens: 200 }));
  messages.push({ role: "assistant", content: answer.join("") });
  console.log(answer.join(""));
}
