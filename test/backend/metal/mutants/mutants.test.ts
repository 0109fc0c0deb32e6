/** Checks drawn kernels with planted mistakes: each is an error that names the fix. */
import { expect, test } from "bun:test";
import { type Finding, MetalContext, metalKernel } from "../../../../src/index.ts";
import { Random } from "../../../ops/samples.ts";
import { repeats } from "../../../support/repeats.ts";
import { seed, someOf } from "../../../support/some.ts";
import type { Mistake, Program } from "./program.ts";
import { programs } from "./programs.ts";

/** Mistakes planted in each program in a usual run; each takes a compilation and trials of other values. */
const MISTAKES = 2;
const drawn = repeats({ usual: 1, all: 5 });
const random = new Random(33 + seed);
const cases = Array.from({ length: drawn }, () => programs.map((draw) => draw(random))).flat();

/** The findings of a run of the kernel; those of a failed run are in the context's report. */
function findings(context: MetalContext, { bindings, grid, threadgroup }: Program, source: string): Finding[] {
  context.report({ clear: true });
  using kernel = metalKernel({ name: "k", source, context });
  try {
    return kernel.run(bindings(), { grid, threadgroup }).findings;
  } catch {
    return context.report({ clear: true }).findings;
  }
}

function withChecker(body: (context: MetalContext) => void): void {
  using context = new MetalContext({ exact: true });
  if (!context.isSoftware) return;
  context.configure("check", true);
  try {
    body(context);
  } finally {
    context.configure("check", false);
    context.report({ clear: true });
  }
}

const planted = ({ source }: Program, { find, replace }: Mistake): string => {
  expect(source.split(find).length, `${find} stands once in\n${source}`).toBe(2);
  return source.replace(find, () => replace);
};

const tells = ({ kinds, says }: Mistake, { kind, severity, message }: Finding): boolean =>
  severity === "error" && kinds.includes(kind) && says.test(message);

const told = (list: readonly Finding[]): string[] =>
  list.map(({ severity, kind, message }) => `${severity} ${kind}: ${message}`);

for (const [at, program] of cases.entries())
  test(`${program.name}, ${Math.floor(at / programs.length) + 1}: no findings, but planted mistakes are found`, () => {
    withChecker((context) => {
      expect(told(findings(context, program, program.source))).toEqual([]);
      for (const mistake of someOf(program.mistakes, MISTAKES)) {
        const list = findings(context, program, planted(program, mistake));
        if (list.some((finding) => tells(mistake, finding))) continue;
        throw new Error(`${mistake.name} is not found in\n${program.source}\n${told(list).join("\n")}`);
      }
    });
  });
