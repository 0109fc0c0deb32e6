/** Addresses of elements, and references to them: legal of arrays and structures, but not of vectors (MSL 2.2.1). */
import type { Random } from "../../../ops/samples.ts";
import { pick } from "./types.ts";

const declarations = `#include <metal_stdlib>
using namespace metal;
struct V { float4 v; float4 list[2]; };
struct S { float x, y, z, w; float list[4]; S next(thread float &f) { f = x; return *this; } };
struct P { float x, y; };
void write_thread(thread float &f) { f = 1; }
void write_device(device float &f) { f = 1; }
template <typename T> void change(thread T &a, T b) { a = b; }
template <typename T> void change(device T &a, T b) { a = b; }
float read(float f) { return f; }
float look(const thread float &f) { return f; }`;

const variables = `float4 v = c[0]; V s; s.v = v; s.list[1] = v; float4 a[2] = {v, v}; float2x4 m(v, v);
  thread V *p = &s; float f[4] = {1, 2, 3, 4}; S q = {1, 2, 3, 4, {5, 6, 7, 8}}; thread S *r = &q;
  P pairs[2] = {{1, 2}, {3, 4}};
  device float4 *b = (device float4 *)y; device S *d = (device S *)y; float2 w = float2(1); bool t = i > 3;`;

type Space = "thread" | "device";
interface Base {
  readonly text: string;
  readonly space: Space;
}

const thread = (...texts: string[]): Base[] => texts.map((text) => ({ text, space: "thread" }));
const device = (...texts: string[]): Base[] => texts.map((text) => ({ text, space: "device" }));

/** Vectors, whose elements have no address. */
const vectors = [
  ...thread("v", "s.v", "a[1]", "a[i & 1]", "p->v", "p->list[1]", "m[1]", "w"),
  ...device("b[0]", "b[i]"),
];
/** Values whose elements are written in the same way, but have an address. */
const named = [...thread("q", "pairs[1]", "(*r)"), ...device("d[0]")];
const indexed = [...thread("f", "q.list", "r->list"), ...device("y", "d[0].list")];

const byName = ["x", "y"];
const byIndex = ["0", "1", "i & 1"];

/** Statements that take an element's address, or bind a reference to it. */
const contexts: readonly ((element: string, space: Space) => string)[] = [
  (element, space) => `${space} float *e = &${element}; *e = 2;`,
  (element, space) => `${space} float *e = &(${element}); *e = 2;`,
  (element, space) => `${space} int *e = (${space} int *)&${element}; *e = 2;`,
  (element, space) => `${space} float &e = ${element}; e = 2;`,
  (element, space) => `${space} auto &e = ${element}; e = 2;`,
  (element, space) => `${space} float &e(${element}); e = 2;`,
  (element, space) => `${space} float &e = t ? ${element} : ${space === "thread" ? "f[1]" : "y[1]"}; e = 2;`,
  (element, space) => `write_${space}(${element});`,
  (element) => `change(${element}, 2.0f);`,
  (element, space) => (space === "thread" ? `q.next(${element});` : `write_device((${element}));`),
  (element, space) => (space === "thread" ? `modf(2.5f, ${element});` : `write_device(${element});`),
];

/** Statements that use a value, where a vector's element is legal. */
const values: readonly ((element: string) => string)[] = [
  (element) => `const thread float &e = ${element} + 1; y[1] = e;`,
  (element) => `float e = ${element}; y[1] = e;`,
  (element) => `auto e = ${element}; e += 1; y[1] = e;`,
  (element) => `${element} = 2; ${element} += 3;`,
  (element) => `y[1] = read(${element}) + max(${element}, 1.0f);`,
  (element) => `y[1] = look(${element} * 2);`,
];

const select = (base: Base, random: Random): string =>
  random.integer(0, 1) === 0 ? `${base.text}.${pick(random, byName)}` : `${base.text}[${pick(random, byIndex)}]`;

/** Draws an element of a vector. */
const ofVector = (random: Random): Base => {
  const base = pick(random, vectors);
  return { text: select(base, random), space: base.space };
};

/** Draws an element of an array or a structure. */
const ofOther = (random: Random): Base => {
  const isNamed = random.integer(0, 1) === 0;
  const base = pick(random, isNamed ? named : indexed);
  const text = isNamed ? `${base.text}.${pick(random, byName)}` : `${base.text}[${pick(random, byIndex)}]`;
  return { text, space: base.space };
};

/** Statements, each in a kernel on a separate line, so that the line of an error identifies the statement. */
export const program = (statements: readonly string[]): string => {
  const parameters = "device float *y [[buffer(0)]], constant float4 *c [[buffer(1)]]";
  const kernels = statements.map(
    (statement, at) =>
      `kernel void k${at}(${parameters}, uint i [[thread_position_in_grid]]) { ` +
      `${variables.replaceAll("\n", " ")} { ${statement} } y[0] = v.x + s.v.x + a[0].x + m[0].x + f[0] + q.x + w.x; }`,
  );
  return `${declarations}\n#line 1\n${kernels.join("\n")}`;
};

/** Every context with drawn elements of vectors. */
export const drawIllegal = (random: Random): string[] =>
  contexts.map((context) => {
    const { text, space } = ofVector(random);
    return context(text, space);
  });

/** The same contexts with other elements, and vectors' elements as values. */
export const drawLegal = (random: Random): string[] => [
  ...contexts.map((context) => {
    const { text, space } = ofOther(random);
    return context(text, space);
  }),
  ...values.map((value) => value(ofVector(random).text)),
];
