/**
 * An agent with tools: the model chooses a tool and its arguments, constrained by a JSON schema, and receives the
 * result, until it answers. `bun examples/agent.ts FOLDER QUESTION`
 */
import { nn, text } from "../src/index.ts";

const tools: Readonly<Record<string, (x: number, y: number) => number>> = {
  add: (x, y) => x + y,
  multiply: (x, y) => x * y,
};
const integer = { type: "integer", minimum: -9999, maximum: 9999 };
const step = {
  anyOf: [
    ...Object.keys(tools).map((name) => ({
      type: "object",
      properties: { tool: { const: name }, x: integer, y: integer },
      required: ["tool", "x", "y"],
      additionalProperties: false,
    })),
    {
      type: "object",
      properties: { answer: { type: "string", maxLength: 80 } },
      required: ["answer"],
      additionalProperties: false,
    },
  ],
};

const [path = "model", question = "What is 12 times 34, plus 5?"] = process.argv.slice(2);
const [tokenizer, { model, chatTemplate = "" }] = [text.loadTokenizer(path), await nn.loadModel(path)];
const template = new text.ChatTemplate(chatTemplate, tokenizer.templateTokens);
const constraint = await text.compileConstraint(tokenizer, { schema: step });
const form = `{"tool": one of ${Object.keys(tools)}, "x", "y"}, or {"answer"} when you know it`;
const task = `Reply in JSON: ${form}. ${question}`;
const messages: text.ChatMessage[] = [{ role: "user", content: task }];
for (let round = 0; round < 5; round++) {
  const tokens = tokenizer.encode(template.render(messages), { addSpecialTokens: false });
  const options = { constraint, temperature: 0.7, seed: round, maxTokens: 150 };
  const said = (await Array.fromAsync(nn.generateText(model, tokenizer, tokens, options))).join("");
  console.log(said);
  const { tool, x, y, answer } = JSON.parse(said) as { tool: string; x: number; y: number; answer?: string };
  if (answer !== undefined) break;
  const result = String(tools[tool](x, y));
  console.log(`${tool}(${x}, ${y}) = ${result}`);
  messages.push({ role: "assistant", content: said }, { role: "user", content: `The result is ${result}.` });
}
