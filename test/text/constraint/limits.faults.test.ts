/** Constraints that grow without bounds, or make XGrammar trap: only that constraint fails, and all others continue. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { packageRoot } from "../../../src/core/paths.ts";
import { text } from "../../../src/index.ts";
import { EngineProcess, Lost } from "../../../src/text/constraint/engine.ts";
import { HeldForm } from "../../../src/text/constraint/held.ts";
import { bunWords } from "../../support/program.ts";
import { repeats } from "../../support/repeats.ts";
import { waitFor } from "../../support/wait.ts";
import { accepts, bytes, drawn, regex } from "./held_to.ts";

const errorOf = (form: Promise<unknown>) =>
  form.then(
    () => undefined,
    (error: unknown) => error,
  );

const properties = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, { type: "integer" }]));

describe("the error names what is too large", () => {
  test.each([
    [`${"(".repeat(12)}.{0,9}${"){0,9}".repeat(12)}`, "tooLarge", /repeats of at most 10000 characters/],
    ["((a{0,1000}){0,1000}){0,1000}", "tooLarge", /repeats of at most 10000 characters/],
    [".{0,1000}".repeat(100), "tooLarge", /at most 20000 byte classes/],
    ["((a{0,90}b){0,90}c){0,90}", "tooLarge", /at most/],
    [`${"(".repeat(200)}a${")".repeat(200)}`, "tooLarge", /at most 64 nested groups/],
    ["a".repeat(5000), "tooLarge", /at most 4096 characters, got 5000/],
  ])("the error for the expression %p names it", async (source, code, message) => {
    expect(await errorOf(regex(source))).toMatchObject({ code, message: expect.stringMatching(message) });
    const schema = { type: "object", properties: { a: { type: "string", pattern: source } } };
    const error = await errorOf(text.compileConstraint(bytes, { schema }));
    expect(error).toMatchObject({
      code: "invalidSchema",
      message: expect.stringMatching(/schema.properties.a.pattern/),
    });
    expect(await accepts(await regex("[ab]{2}"), "ab")).toBe(true);
  });

  let deep: object = { type: "null" };
  for (let level = 0; level < 200_000; level++) deep = { items: deep };

  test.each([
    [{ type: "object", properties: properties(1000) }, /at most 256 optional properties, got 1000/],
    [{ type: "object", properties: properties(1100), required: Object.keys(properties(1100)) }, /at most 1024/],
    [{ anyOf: Array.from({ length: 9 }, () => ({ properties: properties(200) })) }, /at most 1024/],
    [{ enum: Array.from({ length: 3000 }, (_, at) => `value ${at}`) }, /at most 20000 byte classes/],
    [deep, /levels/],
  ])("the error for schema %# names it", async (schema, message) => {
    const error = await errorOf(text.compileConstraint(bytes, { schema: schema as Record<string, unknown> }));
    expect(error).toMatchObject({ name: "ArgumentError", message: expect.stringMatching(message) });
  });

  test("a size at a limit is accepted, the next one is rejected", async () => {
    await text.compileConstraint(bytes, { schema: { type: "object", properties: properties(256) } });
    expect(await errorOf(text.compileConstraint(bytes, { schema: { properties: properties(257) } }))).toBeDefined();
    const nested = (depth: number) => `${"(".repeat(depth)}a${"|b)+".repeat(depth)}`;
    expect(await accepts(await regex(nested(64)), "ab")).toBe(true);
    expect(await errorOf(regex(nested(65)))).toMatchObject({ code: "tooLarge" });
    await regex("[ab]{0,10000}");
    expect(await errorOf(regex("[ab]{0,10001}"))).toMatchObject({ code: "tooLarge" });
  });
});

describe("the largest schema compiles, and the next is rejected", () => {
  const patterns = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`^${at}`, { type: "integer" }]));
  test.each<[string, number, (size: number) => Record<string, unknown>, RegExp]>([
    [
      "values of unique items",
      6,
      (size) => ({ uniqueItems: true, items: { enum: [..."abcdefgh"].slice(0, size) } }),
      /6/,
    ],
    ["patterns of names", 4, (size) => ({ type: "object", patternProperties: patterns(size) }), /at most 4 pattern/],
    [
      "counted properties",
      100,
      (size) => ({ properties: properties(size), required: Object.keys(properties(size)), minProperties: size }),
      /of at most 100/,
    ],
  ])("%s compiles up to the limit: %d", async (_, most, schema, message) => {
    await text.compileConstraint(bytes, { schema: schema(most) });
    const error = await errorOf(text.compileConstraint(bytes, { schema: schema(most + 1) }));
    expect(error).toMatchObject({ name: "ArgumentError", message: expect.stringMatching(message) });
  });
});

test("nested repeats compile, or fail with an error of that constraint alone", async () => {
  const { nest } = fc.letrec<{ nest: string }>((tie) => ({
    nest: fc.oneof(
      { maxDepth: 8 },
      fc.constantFrom("a", ".", "[^b]", "é", "(a|ab)", "(a*|b)"),
      fc
        .tuple(tie("nest"), fc.constantFrom("*", "+", "?", "{0,9}", "{3}", "{2,}", "{0,1000}"))
        .map(([own, times]) => `(${own})${times}`),
      fc.tuple(tie("nest"), tie("nest")).map(([a, b]) => `(${a}|${b})${a}`),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(nest, async (source) => {
      const made = await regex(source).then(
        (form) =>
          drawn(form, () => 0.4, 40).then(
            () => undefined,
            (error: unknown) => error,
          ),
        (error: unknown) => error,
      );
      if (made !== undefined)
        expect(made).toMatchObject({ code: expect.stringMatching(/^(tooLarge|tooSlow|unsupported)$/) });
    }),
    { numRuns: repeats({ usual: 60, all: 600 }), seed: 1 },
  );
  expect(await accepts(await regex("[ab]{2}"), "ab")).toBe(true);
});

/** A constraint that bypasses all checks: it exhausts the stack of the process, as a trap of XGrammar does. */
const trap = () => new HeldForm(bytes, { kind: "regex", source: `(?=a)${"a?".repeat(20_000)}` }).ready();

test("after a trap, generations in progress continue unchanged", async () => {
  const form = await regex("[äöü]{2}-(ab|cd){2}");
  using matcher = await form.start(new Set());
  for (const byte of Buffer.from("äü-a")) await matcher.accept(byte);
  expect(await errorOf(trap())).toMatchObject({
    code: "unsupported",
    message: expect.stringMatching(/stack/i),
  });
  const scores = new Float64Array(256);
  matcher.forbid(scores);
  expect([...scores.keys()].filter((byte) => scores[byte] === 0)).toEqual([98]);
  await errorOf(trap());
  for (const byte of Buffer.from("bcd")) await matcher.accept(byte);
  expect(matcher.isDone).toBe(true);
});

test("a process ends itself at its limit: the task fails, later ones are lost, others restart", async () => {
  const heavy = {
    kind: "schema",
    schema: JSON.stringify({ enum: Array.from({ length: 700 }, (_, at) => `value ${at}`) }),
  } as const;
  const engine = new EngineProcess();
  const vocabulary = new HeldForm(bytes, heavy).vocabulary;
  await vocabulary.tell(engine);
  const tasks = [0.01, 5].map((seconds, id) =>
    errorOf(engine.ask({ kind: "form", id, vocabulary: vocabulary.id, form: heavy }, seconds)),
  );
  expect(await tasks[0]).toMatchObject({ code: "tooSlow", message: expect.stringMatching(/too large/) });
  expect(await tasks[1]).toBeInstanceOf(Lost);
  expect(engine.isAlive).toBe(false);
  expect(await accepts(await regex("a|b"), "b")).toBe(true);
});

const program = (body: string) =>
  Bun.spawn(
    [
      ...bunWords,
      "-e",
      `import { data, text } from "./src/index.ts";
       import { HeldForm } from "./src/text/constraint/held.ts";
       const bytes = new data.ByteTokenizer();
       ${body}`,
    ],
    {
      ...({ cwd: packageRoot, stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const),
    },
  );

test("a finished program ends, and XGrammar prints nothing to the terminal", async () => {
  const child = program(`
    const schemas = [{ type: "string", pattern: "\\\\S[^é]" }, { prefixItems: [{ uniqueItems: true }] }];
    for (const schema of schemas) await text.compileConstraint(bytes, { schema }).catch(() => undefined);
    await new HeldForm(bytes, { kind: "regex", source: "(?=a)" + "a?".repeat(20_000) }).ready().catch(() => undefined);
    await text.compileConstraint(bytes, { regex: "[äö]" });
    console.log("done");
  `);
  const said = await Promise.all([child.stdout, child.stderr].map((own) => new Response(own).text()));
  expect([...said, await child.exited]).toEqual(["done\n", "", 0]);
});

test("the process ends with its program, however that ends", async () => {
  const child = program(`
    const form = await text.compileConstraint(bytes, { regex: "a*" });
    await form.start(new Set());
    console.log("ready");
    setInterval(() => undefined, 1000);
  `);
  await child.stdout.getReader().read();
  const children = Bun.spawnSync(["pgrep", "-P", String(child.pid)])
    .stdout.toString()
    .trim()
    .split("\n")
    .map(Number);
  expect(children.length).toBe(1);
  child.kill("SIGKILL");
  const isGone = () => {
    try {
      return !process.kill(children[0], 0);
    } catch {
      return true;
    }
  };
  await waitFor("the process for forms to end", isGone);
});
