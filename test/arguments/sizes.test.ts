/**
 * Tests limits of sizes and depths that no argument table lists, with the largest accepted size and the next larger
 * one.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as fc from "fast-check";
import { z } from "zod";
import { describeValue } from "../../src/core/describe.ts";
import { FileFormatError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { printedLines } from "../../src/core/printing.ts";
import {
  batchNorm,
  groupNorm,
  instanceNorm,
  layerNorm,
  nn,
  rmsNorm,
  type Tensor,
  tensor,
  text,
} from "../../src/index.ts";
import { formatMetadata } from "../../src/io/format.ts";
import { brief, parseJson } from "../../src/io/json.ts";
import { parseHeader } from "../../src/io/numpy/header.ts";
import { checkDepth } from "../../src/nn/layers/slots.ts";
import { readBody } from "../../src/serve/body.ts";
import { defaultLimits } from "../../src/serve/limits.ts";
import { readBytes } from "../../src/serve/read_bytes.ts";
import { compiledOnce } from "../../src/serve/response_format.ts";
import { schemaText } from "../../src/text/constraint/schema_text.ts";
import { bytes } from "../text/constraint/held_to.ts";

/** JSON with this many levels. */
const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

const render = (source: string, messages: readonly { role: string; content: string }[] = []) =>
  new text.ChatTemplate(source).render(messages);

/** A call with a size, the largest size, and the error for the next one. */
type Limit = readonly [name: string, most: number, call: (size: number) => unknown, error: string];

const failed = (_: unknown, message: string) => new Error(message);
const request = (body: string) => new Request("http://localhost", { method: "POST", body });
const headers = new Headers({ "content-type": "application/json" });
const bodyOf = async (body: string) => readBody({ headers, body: Buffer.from(body) }, z.unknown());
/** A header of NumPy's version 2, padded with spaces. */
function numpyHeader(size: number): Uint8Array {
  const literal = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }".padEnd(size);
  const head = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 2, 0, size & 255, size >> 8, 0, 0);
  return Uint8Array.of(...head, ...Buffer.from(literal));
}
const spaces = (text: string) => `${text.match(/\n *(?=b)/)?.[0].length}`;

const all: readonly Limit[] = [
  ["JSON of files", 128, (depth) => parseJson(nested(depth), failed), "nested more than 128 deep"],
  ["JSON that is told another depth", 5, (depth) => parseJson(nested(depth), failed, 5), "nested more than 5 deep"],
  ["a request's body", 256, (depth) => bodyOf(nested(depth)), "at most 256 nested levels"],
  ["a body's bytes", 2 ** 20, (size) => readBytes(request("1".padEnd(size)), 2 ** 20, 60), "at most 1048576 bytes"],
  ["modules in modules", 1000, checkDepth, "at most 1000 deep"],
  ["a header of NumPy", 10_000, (size) => parseHeader(numpyHeader(size), failed as never), "10000"],
  ["a schema's text", 65_536, (size) => schemaText({ title: "a".repeat(size - 12) }), "at most 65536 characters"],
  ["indents of tojson", 64, (size) => render(`{{ [1] | tojson(indent=${size}) }}`), "indents by at most 64"],
  ["indents of texts", 64, (size) => spaces(render(`{{ 'a\\nb' | indent(${size}) }}`)), "indents by at most 64"],
  ["ranges of templates", 125_000, (size) => render(`{{ range(${size}) | length }}`), "ranges of at most 125000"],
  [
    "expressions",
    4096,
    (size) => text.compileConstraint(bytes, { regex: "a{1}".padStart(size, "a") }),
    "at most 4096 characters, got 4097",
  ],
];

describe("the largest size is accepted, and the next is rejected", () => {
  test.each(all)("%s accepts sizes up to %d", async (_, most, call, error) => {
    for (const size of [most - 1, most]) await call(size);
    let problem = "nothing";
    try {
      await call(most + 1);
    } catch (thrown) {
      problem = String(thrown);
    }
    expect(problem).toContain(error);
  });
});

describe("eps may be 0, but not negative:", () => {
  const x = tensor([1, 2, 3, 5], { shape: [2, 2, 1] });
  const training = { training: true } as const;
  test.each<[string, (eps: number) => Tensor]>([
    ["layerNorm", (eps) => layerNorm(x, { normalizedShape: [2, 1], eps })],
    ["rmsNorm", (eps) => rmsNorm(x, { normalizedShape: [2, 1], eps })],
    ["groupNorm", (eps) => groupNorm(x, 1, { eps })],
    ["instanceNorm", (eps) => instanceNorm(x, { eps })],
    ["batchNorm", (eps) => batchNorm(x, { ...training, eps })],
  ])("%s accepts eps 0 and rejects a negative eps", (_, norm) => {
    for (const eps of [0, Number.MIN_VALUE]) expect(norm(eps).shape).toEqual(x.shape);
    for (const eps of [-Number.MIN_VALUE, Infinity, Number.NaN]) expect(() => norm(eps)).toThrow(/expected eps to be/);
  });
});

describe("texts are truncated at the stated length", () => {
  const textOf = (size: number) => "abcdefghij".repeat(40).slice(0, size);

  test("values in messages are truncated", () => {
    expect(describeValue(textOf(60))).toBe(`"${textOf(60)}"`);
    expect(describeValue(textOf(61))).toBe(`"${textOf(60)}…"`);
    expect(describeValue(10n ** 59n)).toBe(`1${"0".repeat(59)}n`);
    expect(describeValue(10n ** 60n)).toBe("a large bigint");
    const keys = (size: number) => ({ [textOf(size)]: 1 });
    expect(describeValue(keys(60))).toBe(`an object with ${textOf(60)}`);
    expect(describeValue(keys(61))).toBe(`an object with ${textOf(60)}…`);
    const list = (count: number) => Array.from({ length: count }, (_, at) => at);
    expect(describeValue(list(9))).toBe("[0, 1, 2, 3, 4, 5, 6, 7, 8]");
    expect(describeValue(list(10))).toBe("[0, 1, 2, 3, 4, 5, 6, 7, 8, … 10 in total]");
    // Two texts in quotes, with a comma between them: 120 characters, and 121.
    expect(describeValue([textOf(57), textOf(57)])).toBe(`["${textOf(57)}", "${textOf(57)}"]`);
    expect(describeValue([textOf(57), textOf(58)])).toBe(`["${textOf(57)}", "${textOf(58)}…]`);
    expect(describeValue([[[1, 2]]])).toBe("[[an array of 2]]");
  });

  test("values from files are truncated", () => {
    expect(formatMetadata(textOf(58))).toBe(`"${textOf(58)}"`);
    expect(formatMetadata(textOf(59))).toBe(`"${textOf(59)}…`);
    expect(brief(textOf(58))).toBe(`"${textOf(58)}"`);
    expect(brief(textOf(59))).toBe(`"${textOf(58)}…`);
    expect(brief([Infinity, -Infinity])).toBe('["Infinity","-Infinity"]');
    expect(brief(undefined)).toBe("nothing");
    const fileError = (name: string) => new FileFormatError("load", "bad", "a.bin", "expected more", name).message;
    expect(fileError(textOf(200))).toContain(`${textOf(200)}`);
    expect(fileError(textOf(200))).not.toContain("…");
    expect(fileError(textOf(201))).toContain(`${textOf(200)}…`);
  });

  test("lists of lines are truncated", () => {
    const lines = (count: number) => Array.from({ length: count }, (_, at) => `${at}`);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 20 }), (count) => {
        expect(printedLines(lines(count), "lines")).toEqual(lines(count));
      }),
    );
    expect(printedLines(lines(21), "lines")).toEqual([...lines(19), "… and 2 more lines"]);
    expect(printedLines(lines(5000), "lines").at(-1)).toBe("… and 4,981 more lines");
  });
});

describe("the cache of compiled constraints is bounded", () => {
  const form = {} as never;
  const served = () => ({}) as never;

  test("the cache keeps the last 16 constraints, and no failures", async () => {
    const model = served();
    const made: string[] = [];
    const ask = (key: string, own: unknown = model) =>
      compiledOnce(own as never, key, async () => {
        made.push(key);
        if (key === "bad") throw new Error("bad");
        return form;
      });
    const keys = Array.from({ length: 16 }, (_, at) => `key ${at}`);
    for (const key of [...keys, ...keys]) expect(await ask(key)).toBe(form);
    expect(made.splice(0)).toEqual(keys);
    await ask("more"); // the first key is the one that is evicted
    await ask(keys[1]);
    expect(made.splice(0)).toEqual(["more"]);
    await ask(keys[0]); // replaces the constraint of the third key
    await ask(keys[1]);
    expect(made.splice(0)).toEqual([keys[0]]);
    await ask(keys[2]);
    expect(made.splice(0)).toEqual([keys[2]]);
    await ask(keys[1], served()); // another model has separate constraints
    expect(made.splice(0)).toEqual([keys[1]]);
    for (const _ of [1, 2]) await expect(ask("bad")).rejects.toThrow("bad");
    expect(made).toEqual(["bad", "bad"]);
  });

  test("16 constraints compile at once, and the next is rejected until one finishes", async () => {
    const ends: PromiseWithResolvers<never>[] = [];
    const model = served();
    const start = (key: string) =>
      compiledOnce(model, key, () => {
        ends.push(Promise.withResolvers<never>());
        return ends.at(-1)!.promise;
      });
    const forms = Array.from({ length: 16 }, (_, at) => start(`${at}`));
    const again = start("3"); // this constraint is being compiled already
    await expect(start("more")).rejects.toMatchObject({ status: 429, message: expect.stringContaining("too many") });
    ends[5].resolve(form);
    expect(await forms[5]).toBe(form);
    const next = start("more");
    await expect(start("one more")).rejects.toMatchObject({ status: 429 });
    for (const { resolve } of ends) resolve(form);
    expect(new Set(await Promise.all([...forms, again, next]))).toEqual(new Set([form]));
  });
});

test("the limits of servers match their documentation", async () => {
  const source = await Bun.file(join(packageRoot, "src", "serve", "limits.ts")).text();
  const documented = [...source.matchAll(/Default (false|[\d,]+)( MiB)?[^\n]*\n {2}readonly (\w+)/g)].map(
    ([, value, isMiB, name]) => [
      name,
      value === "false" ? false : Number(value.replaceAll(",", "")) * (isMiB ? 2 ** 20 : 1),
    ],
  );
  expect(Object.fromEntries(documented)).toEqual({ ...defaultLimits });
  expect(defaultLimits.bodyBytes).toBe(4 * 2 ** 20);
});

describe("a module inside 1000 others is accepted, inside 1001 rejected", () => {
  const nest = (depth: number): nn.Module => {
    let model: nn.Module<[x: Tensor], Tensor> = new nn.Linear(2, 2);
    for (let at = 0; at < depth; at++) model = new nn.Sequential(model);
    return model;
  };
  const [deepest, deeper] = [nest(1000), nest(1001)];
  const name = (inner: string) => `${"0.".repeat(1000)}${inner}`;
  test.each<[string, (model: nn.Module) => unknown, unknown]>([
    ["modules", (model) => model.modules().length, 1001],
    ["namedModules", (model) => [...model.namedModules().keys()].at(-1), name("").slice(0, -1)],
    ["parameters", (model) => model.parameters().length, 2],
    ["stateDict", (model) => Object.keys(model.stateDict()), [name("weight"), name("bias")]],
    ["printing", (model) => Bun.inspect(model).match(/Sequential\(/g)?.length, 1000],
    ["texts", (model) => String(model).match(/Sequential\(/g)?.length, 1000],
  ])("%s accepts 1000 levels and rejects 1001", (_, call, result) => {
    expect(call(deepest)).toEqual(result);
    const refused = expect.objectContaining({ name: "ArgumentError", code: "tooDeep" });
    expect(() => call(deeper)).toThrow(refused);
  });
});
