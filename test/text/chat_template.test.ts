/** Chat templates, against Jinja itself as transformers sets it up. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { text } from "../../src/index.ts";

interface Row {
  readonly template: string;
  readonly messages: readonly text.ChatMessage[];
  readonly tools: readonly object[] | null;
  readonly prompted: boolean;
  readonly text: string;
}
const path = join(packageRoot, "test", "fixtures", "text", "templates.json");
const [{ sources }, ...rows] = (await Bun.file(path).json()) as [{ sources: Record<string, string> }, ...Row[]];
const tokens = { bosToken: "<s>", eosToken: "</s>" };

test.each(rows.map((row, at) => [at, row.template, row] as const))("row %d: %s", (_at, name, row) => {
  const template = new text.ChatTemplate(sources[name]!, tokens);
  const options = { addGenerationPrompt: row.prompted, ...(row.tools && { tools: row.tools }) };
  expect(template.render(row.messages, options)).toBe(row.text);
});

test("what a template refuses, and what is no template", () => {
  const template = new text.ChatTemplate(sources["instruct"]!, tokens);
  expect(() => template.render([{ role: "assistant", content: "a" }])).toThrow(/roles must alternate/);
  expect(() => new text.ChatTemplate("{% if %}")).toThrow(expect.objectContaining({ code: "invalidTemplate" }));
  expect([sources["chatml"]!, sources["instruct"]!].map((own) => new text.ChatTemplate(own).takesTools)).toEqual([
    true,
    false,
  ]);
});
