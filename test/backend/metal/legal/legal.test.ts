/**
 * Legal programs, drawn: both passes of the software device's compiler have to take them. What it wrongly refuses is
 * mended there; until then `excluded` names it.
 */
import { expect, test } from "bun:test";
import { metalContext } from "../../../../src/backend/metal/context.ts";
import { createLibrary } from "../../../../src/backend/metal/pipeline.ts";
import { KernelCompileError } from "../../../../src/index.ts";
import { Random } from "../../../ops/samples.ts";
import { repeats } from "../../../support/repeats.ts";
import { seed } from "../../../support/some.ts";
import { declarations } from "./declarations.ts";
import { drawProgram, excluded, header } from "./program.ts";
import { statements } from "./statements.ts";
import { structures } from "./structures.ts";
import { pick } from "./types.ts";

/** Every version has to take what is drawn: it uses nothing newer than the first. */
const versions = ["3.1", "3.2", "4.0", "4.1"] as const;

/** The compiler's text; undefined where all of the program compiles in both passes. */
function refusal(source: string, languageVersion: (typeof versions)[number]): string | undefined {
  const context = metalContext();
  if (context.isSoftware) context.configure("whole", true);
  try {
    context.native.orchard_release(createLibrary(context, "legal", { source, languageVersion, fileName: "drawn" }));
    return undefined;
  } catch (error) {
    if (error instanceof KernelCompileError) return error.diagnostics;
    throw error;
  } finally {
    if (context.isSoftware) context.configure("whole", false);
  }
}

/** Apple's compiler need not know the newest versions. */
const version = (random: Random) => pick(random, metalContext().isSoftware ? versions : versions.slice(0, 1));

const first = seed * 100_000;

test.each(Array.from({ length: repeats({ usual: 6, all: 100 }) }, (_, at) => first + at))(
  "program %d compiles",
  (at) => {
    const source = drawProgram(at);
    const problem = refusal(source, version(new Random(at)));
    if (problem !== undefined) throw new Error(`${problem}\n${source}`);
  },
);

test("programs have every kind of declaration and statement, but for those that are excluded", () => {
  const kinds = [declarations, statements, structures].flatMap((table) => Object.keys(table));
  expect(Object.keys(excluded).filter((kind) => !kinds.includes(kind))).toEqual([]);
  const marks: Readonly<Record<string, RegExp>> = {
    ...{ template: /template <typename T/, overloads: /\bo\d+\(half2 x\)/, spaces: /\bat\d+\(tile, i & 3\)/ },
    ...{ functionConstant: /function_constant\(\d\)/, collective: /simd_shuffle_xor/, atomic: /atomic_fetch_/ },
    ...{ choice: /switch \(/, loop: /while \(/, shared: /threadgroup float m\d+\[32\]/, operators: /operator\+=/ },
    ...{ traits: /enable_if_t/, sized: /array<T, N>/, copies: /packed_float3 p/, matrices: /transpose\(m\)/ },
    ...{ bits: /union U/, deduced: /decltype/, functors: /Op::init/, blocks: /simdgroup_multiply_accumulate/ },
    ...{ qualifiedResult: /inline thread/, initialized: /threadgroup float n/ },
  };
  const all = Array.from({ length: 100 }, (_, at) => drawProgram(first + at)).join("\n");
  expect(Object.entries(marks).filter(([kind, mark]) => mark.test(all) === kind in excluded)).toEqual([]);
});

test("what is excluded is still refused: else its row goes", () => {
  if (!metalContext().isSoftware) return expect(process.platform).toBe("darwin");
  const programs: Readonly<Record<keyof typeof excluded, string>> = {
    qualifiedResult: "inline thread float f(float x) { return x; } kernel void k(device float *y) { y[0] = f(1); }",
  };
  const refused = Object.keys(excluded).filter((kind) => {
    const [message = ""] = excluded[kind]!.split(", where ");
    return refusal(header + programs[kind], "3.1")?.includes(message);
  });
  expect(refused).toEqual(Object.keys(excluded));
});

test("a program that is not legal is refused", () => {
  const source = drawProgram(first);
  expect(source).toStartWith(header);
  expect(refusal(source.replace("tile[t & 3] =", "tile = y; tile[t & 3] ="), "3.1")).toContain("error");
});
