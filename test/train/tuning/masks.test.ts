/** Which tokens of chats are trained on. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { text } from "../../../src/index.ts";
import { parseLine } from "../../../src/train/tuning/chats.ts";
import { Encoder } from "../../../src/train/tuning/examples.ts";
import { AnswerFinder } from "../../../src/train/tuning/spans.ts";

const fixture = (name: string) =>
  JSON.parse(readFileSync(join(packageRoot, "test", "fixtures", "text", `${name}.json`), "utf8"));
const tokenizerOf = (name: string): text.PretrainedTokenizer => {
  const { tokenizer, config } = fixture(name);
  return new text.PretrainedTokenizer(tokenizer, { config });
};
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string, more: object = {}) => ({ role: "assistant", content, ...more });

const chatml =
  "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";
const instruct =
  "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]" +
  "{% else %} {{ m.content }}{{ eos_token }}{% endif %}{% endfor %}";
/** Like Qwen3: the thoughts are kept only in the last answer. */
const thinking =
  "{% for m in messages %}<|start|>{{ m.role }}\n{% if m.role == 'assistant' and loop.last %}<think>\n\n</think>\n\n" +
  "{% endif %}{{ m.content }}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";

/** The trained text of each example, piece by piece, and the whole. */
function learned(line: object, template: string | undefined, name = "llama3") {
  const tokenizer = tokenizerOf(name);
  const finder = template === undefined ? undefined : new AnswerFinder(template, tokenizer.templateTokens);
  return new Encoder(tokenizer, finder).examplesOf(parseLine(JSON.stringify(line), "chats:1")).map((example) => {
    const pieces: number[][] = [];
    let isOpen = false;
    for (const [at, token] of example.tokens.entries()) {
      if (example.isTarget[at] === 1 && !isOpen) pieces.push([]);
      isOpen = example.isTarget[at] === 1;
      if (isOpen) pieces.at(-1)!.push(token);
    }
    const textOf = (tokens: Iterable<number>) => tokenizer.decode(tokens, { skipSpecialTokens: false, isStart: false });
    return { whole: textOf(example.tokens), pieces: pieces.map(textOf) };
  });
}

describe("masks by {% generation %} equal those of transformers", () => {
  const { templates, rows } = fixture("masks");
  test.each<[number, string, { messages: object[]; tokens: number[]; mask: number[] }]>(
    rows.map((row: { template: string }, at: number) => [at, row.template, row]),
  )("row %d has the trained tokens of transformers, %s", (_, name, { messages, tokens, mask }) => {
    const tokenizer = tokenizerOf("llama3");
    const finder = new AnswerFinder(templates[name], tokenizer.templateTokens);
    const [example] = new Encoder(tokenizer, finder).examplesOf(parseLine(JSON.stringify({ messages }), "chats:1"));
    expect([...example.tokens]).toEqual(tokens);
    expect([...example.isTarget]).toEqual(mask);
  });
});

describe("masks by prefixes of a chat cover the answers", () => {
  const messages = [user("the 日本"), assistant("def 🍎\n x"), user("and"), assistant("नमस्ते")];

  test("answers and their end tokens are trained on", () => {
    expect(learned({ messages }, chatml)).toEqual([
      {
        whole:
          "<|start|>user\nthe 日本<|end|>\n<|start|>assistant\ndef 🍎\n x<|end|>\n" +
          "<|start|>user\nand<|end|>\n<|start|>assistant\nनमस्ते<|end|>\n",
        pieces: ["def 🍎\n x<|end|>", "नमस्ते<|end|>"],
      },
    ]);
  });

  test("only answers of weight 1, or only the completion, are trained on", () => {
    const some = messages.map((own, at) => (at === 1 ? { ...own, weight: 0 } : own));
    expect(learned({ messages: some }, chatml)[0].pieces).toEqual(["नमस्ते<|end|>"]);
    const pair = { prompt: messages.slice(0, 3), completion: messages.slice(3) };
    expect(learned(pair, chatml)[0].pieces).toEqual(["नमस्ते<|end|>"]);
  });

  test("a template without a generation prompt works, and SentencePiece, whose pieces lack the text's bytes", () => {
    const two = [user("2"), assistant("4 5"), user("6"), assistant("8")];
    const [found] = learned({ messages: two }, instruct, "llama2");
    expect(found.pieces.map((own) => own.trim())).toEqual(["4 5</s>", "8</s>"]);
    expect(learned({ messages: two }, instruct)[0].pieces).toEqual([" 4 5<|end|>", " 8<|end|>"]);
  });

  test("a template that formats earlier answers differently gives an example for each", () => {
    const found = learned({ messages }, thinking);
    expect(found.map(({ pieces }) => pieces)).toEqual([
      ["<think>\n\n</think>\n\ndef 🍎\n x<|end|>"],
      ["<think>\n\n</think>\n\nनमस्ते<|end|>"],
    ]);
    expect(found[1].whole).toContain("<|start|>assistant\ndef 🍎\n x<|end|>");
  });

  test("an answer may be a tool call", () => {
    const template =
      "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content or '' }}{% if m.tool_calls %}" +
      "{{ m.tool_calls[0].function.name }}{% endif %}<|end|>\n{% endfor %}" +
      "{% if tools %}{{ tools | length }}{% endif %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";
    const call = { role: "assistant", content: null, tool_calls: [{ function: { name: "add" } }] };
    const [found] = learned({ messages: [user("1"), call] }, template);
    expect(found.pieces).toEqual(["add<|end|>"]);
  });

  test("a template that changes the text before an answer is rejected, with file and line", () => {
    const template = "{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}";
    expect(() => learned({ messages }, template)).toThrow(
      "chats:1: expected a template that renders the messages before",
    );
  });
});

describe("data without messages can be trained on", () => {
  test("completions and the end of the text are trained on, and texts except for their first token", () => {
    expect(learned({ prompt: "the 1", completion: " 2" }, undefined)).toEqual([
      { whole: "<|begin|>the 1 2<|end|>", pieces: [" 2<|end|>"] },
    ]);
    expect(learned({ text: "def f" }, undefined)).toEqual([
      { whole: "<|begin|>def f<|end|>", pieces: ["def f<|end|>"] },
    ]);
    expect(learned({ prompt: "", completion: "a" }, undefined, "gpt2")[0].pieces).toEqual(["a<|end|>"]);
  });

  test("a token across the border is not trained on", () => {
    const tokenizer = tokenizerOf("llama3");
    const word = Array.from({ length: 600 }, (_, token) => tokenizer.decode([token])).find((own) => own.length === 3)!;
    const [found] = learned({ prompt: word.slice(0, 1), completion: `${word.slice(1)} ${word}` }, undefined);
    expect(found.pieces).toEqual([` ${word}<|end|>`]);
  });
});

test("a question is the text that the template writes before an answer", () => {
  const { templateTokens } = tokenizerOf("llama3");
  expect(new AnswerFinder(chatml, templateTokens).ask("Hi?")).toBe("<|start|>user\nHi?<|end|>\n<|start|>assistant\n");
  expect(new AnswerFinder(instruct, { ...templateTokens, bosToken: "<s>" }).ask("Hi?")).toBe("<s>[INST] Hi? [/INST]");
});
