/** Programs that Metal rejects, drawn, and similar legal programs. */
import { expect, test } from "bun:test";
import { Random } from "../../../ops/samples.ts";
import { repeats } from "../../../support/repeats.ts";
import { seed } from "../../../support/some.ts";
import { drawIllegal, drawLegal, program } from "./elements.ts";
import { drawCalls, kindNames } from "./recursion.ts";
import { refusal } from "./refusal.ts";

const first = seed * 100_000;
const cases = (count: { readonly usual: number; readonly all: number }) =>
  Array.from({ length: repeats(count) }, (_, at) => first + at);

test.each(cases({ usual: 3, all: 60 }))("program %d without recursion is accepted", (at) => {
  const { source } = drawCalls(new Random(at), 0);
  const problem = refusal(source, "3.1");
  if (problem !== undefined) throw new Error(`${problem}\n${source}`);
});

test.each(cases({ usual: 4, all: 60 }))("recursion in program %d is rejected", (at) => {
  const { source, cycle } = drawCalls(new Random(at), 1 + (at % 3));
  const problem = refusal(source, "3.1");
  if (!problem?.includes("recursion is not supported in Metal"))
    throw new Error(`a cycle of ${cycle.join(", ")} was accepted: ${problem}\n${source}`);
});

test("cycles have functions of every kind", () => {
  const drawn = Array.from({ length: 60 }, (_, at) => drawCalls(new Random(first + at), 1 + (at % 3)).cycle).flat();
  expect(kindNames.filter((kind) => !drawn.includes(kind))).toEqual([]);
});

test.each(cases({ usual: 1, all: 20 }))("references to elements of vectors are rejected: %d", (at) => {
  const statements = drawIllegal(new Random(at));
  const problem = refusal(program(statements), "3.1") ?? "";
  const wrong = new Set([...problem.matchAll(/:(\d+):\d+: error: .*vector element/g)].map((match) => Number(match[1])));
  expect(statements.filter((_, line) => !wrong.has(line + 1))).toEqual([]);
});

test.each(cases({ usual: 1, all: 20 }))("references to elements of arrays and structures are accepted: %d", (at) => {
  const statements = drawLegal(new Random(at));
  const problem = refusal(program(statements), "3.1");
  if (problem !== undefined) throw new Error(`${problem}\n${statements.join("\n")}`);
});
