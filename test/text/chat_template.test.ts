/** Chat templates, compared with Jinja as transformers configures it. */
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

test.each(rows.map((row, at) => [at, row.template, row] as const))(
  "row %d is rendered as by transformers: %s",
  (_at, name, row) => {
    const template = new text.ChatTemplate(sources[name], tokens);
    const options = { addGenerationPrompt: row.prompted, ...(row.tools && { tools: row.tools }) };
    expect(template.render(row.messages, options)).toBe(row.text);
  },
);

test("invalid arguments and invalid templates are rejected", () => {
  const template = new text.ChatTemplate(sources["instruct"], tokens);
  expect(() => template.render([{ role: "assistant", content: "a" }])).toThrow(/roles must alternate/);
  expect(() => new text.ChatTemplate("{% if %}")).toThrow(expect.objectContaining({ code: "invalidTemplate" }));
  expect([sources["chatml"], sources["instruct"]].map((own) => new text.ChatTemplate(own).takesTools)).toEqual([
    true,
    false,
  ]);
});

const doubled = (start: string, step: string, times: number) => `${start}${step.repeat(times)}`;
test.each([
  ["{% for i in range(10000000) %}a{% endfor %}", /ranges of at most/],
  ["{{ range(1, 5, 0) | length }}", /no step of 0/],
  ["{{ range(0, 1000000000, 0.0001) | length }}", /ranges of at most/],
  ["{{ messages | tojson(indent=1000000000) }}", /indents by at most 64/],
  ["{{ 'a\nb' | indent(1000000000) }}", /indents by at most 64/],
  ["{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", /uses at most 1000000 steps/],
  [
    "{% for a in range(99999) %}{% if a %}{% continue %}{% endif %}{% endfor %}" +
      "{% for b in range(99999) %}{{ b ~ b ~ b ~ b ~ b ~ b ~ b ~ b ~ b ~ b }}{% endfor %}",
    /uses at most 1000000 steps/,
  ],
  ["{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}", /nests at most/],
  [`{{ ${"(".repeat(9000)}1${")".repeat(9000)} }}`, /./],
  [`{{ ${"1 + ".repeat(5000)}1 }}`, /nests at most 1000 levels/],
  [doubled("{% set a = 'aaaaaaaa' %}", "{% set a = a ~ a %}", 60), /at most/],
  [`${doubled("{% set a = ['aaaaaaaa'] %}", "{% set a = a + a %}", 60)}{{ a | length }}`, /at most/],
  [`${doubled("{% set a = [1] %}", "{% set a = [a, a] %}", 60)}{{ a | tojson }}`, /at most/],
  [`${doubled("{% set a = {'b': 1} %}", "{% set a = {'b': a, 'c': a} %}", 60)}{{ a }}`, /at most/],
  [doubled("{% set a = 'aaaaaaaa' %}", "{% set a = a.replace('a', a) %}", 9), /(texts|values) of at most/],
  [
    doubled("{% set a = 'aaaaaaaa' %}{% set f = a.replace %}", "{% set a = a | replace('a', a) %}", 9),
    /(texts|values) of at most/,
  ],
  [doubled("{% set a = 'aaaaaaaa' %}", "{% set a = a | join(a) %}", 9), /(texts|values) of at most/],
  [`${"{% set a = namespace(b=1) %}{% set c = namespace(b=[a, a]) %}"}{{ c.b | tojson }}`, /no namespace into/],
  ["{% for i in range(9000) %}{{ messages | tojson }}{% endfor %}", /at most/],
] as const)("template %# is rejected at a limit", (source, message) => {
  const long = [{ role: "user", content: "a".repeat(100_000) }];
  const render = () => new text.ChatTemplate(source).render(long);
  expect(render).toThrow(expect.objectContaining({ name: "ArgumentError", message: expect.stringMatching(message) }));
});

test("a long chat with a typical template stays far below the limits", () => {
  const source =
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}" +
    "{% set ns.n = ns.n + 1 %}{{ m.role | upper }}: {{ m.content.split('</think>')[-1].lstrip('\\n') | trim }}" +
    "{{ m | tojson(indent=2) | replace('\\n', '\\n  ') | indent(4, true) }}{{ '%s' | default(100) }}\n{% endfor %}" +
    "{{ ns.n }}";
  const messages = Array.from({ length: 3000 }, (_, at) => ({
    role: at % 9 ? "user" : "system",
    content: `${at} `.repeat(99),
  }));
  expect(new text.ChatTemplate(source).render(messages)).toEndWith("\n2666");
});
