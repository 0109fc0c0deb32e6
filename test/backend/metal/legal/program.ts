/** Whole programs: declarations, functions and kernels with their attributes and address spaces. */
import { Random } from "../../../ops/samples.ts";
import { type Declared, declarations, times, value } from "./declarations.ts";
import type { Scope, Variable } from "./expressions.ts";
import { statements } from "./statements.ts";
import { structures } from "./structures.ts";
import { drawType, nameOf, pick, scalar } from "./types.ts";

export const header = "#include <metal_stdlib>\nusing namespace metal;\n";

/** Attributes of positions with the types that MSL 5.2.3.6 allows, all with one number of components. */
const positions = (random: Random): string => {
  const [type, at] = pick(random, [
    ["uint", "at"],
    ["ushort", "at"],
    ["uint2", "at.x"],
    ["uint3", "at.x"],
    ["ushort3", "at.x"],
  ] as const);
  const group = type.replace(/^uint|^ushort/, pick(random, ["uint", "ushort"]));
  return `${type} at [[thread_position_in_grid]], ${group} within [[thread_position_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]]|${at}|${at.replace("at", "within")}`;
};

function kernel(declared: Declared, index: number, random: Random): string {
  const [inputs, at, within] = positions(random).split("|");
  const fixed: Variable[] = [
    { text: "x[i & 7]", type: scalar("float"), isConst: true },
    { text: "h[i & 7]", type: { scalar: "half", length: 4 }, isConst: true },
    { text: "w", type: scalar("uint"), isConst: true },
    { text: "i", type: scalar("uint"), isConst: true },
    { text: "lane", type: scalar("ushort"), isConst: true },
  ];
  let scope: Scope = {
    random,
    functions: declared.functions,
    variables: [...declared.variables, ...declared.inKernels, ...fixed],
  };
  const body: string[] = [];
  const kinds = Object.values(statements);
  for (let at = 0; at < 8; at++) {
    const make = at < 2 ? statements.variable : pick(random, kinds);
    const { text, variables = [] } = make(scope, 10 * index + at);
    body.push(text);
    scope = { ...scope, variables: [...scope.variables, ...variables] };
  }
  const result = drawType(random);
  const limit = pick(random, ["", "[[max_total_threads_per_threadgroup(256)]] "]);
  return `${limit}kernel void probe${index}(device const float *x [[buffer(0)]], constant half4 *h [[buffer(1)]],
    constant uint &w [[buffer(2)]], device atomic_uint *counts [[buffer(3)]],
    device ${nameOf(result)} *y [[buffer(4)]], threadgroup float *tile [[threadgroup(0)]], ${inputs}) {
const uint i = ${at}; const uint t = ${within};
${body.join("\n")}
tile[t & 3] = float(t);
y[i & 7] = ${value(result, scope)};
}`;
}

/** A kernel that is a template, with its instances. */
function instances(index: number, random: Random): string {
  const types = ["float", "half", "int", "uchar"].filter(() => random.integer(0, 1) === 1);
  const signature = (type: string) =>
    `device ${type} *y [[buffer(0)]], constant uint &n [[buffer(1)]], uint i [[thread_position_in_grid]]`;
  return [
    `template <typename T, uint N = 2>
kernel void many${index}(${signature("T")}) { if (i < n) y[i] = T(y[i] * T(N)); }`,
    ...types.map(
      (type) =>
        `template [[host_name("many${index}_${type}")]] kernel void many${index}<${type}, 3>(${signature(type)});`,
    ),
  ].join("\n");
}

/** A legal program of several kernels. */
export function drawProgram(seed: number): string {
  const random = new Random(seed);
  const declared: Declared = { text: [], functions: [], variables: [], inKernels: [] };
  const kinds = Object.values({ ...declarations, ...structures });
  times(10, (index) => pick(random, kinds)(declared, index, random));
  return [header, ...declared.text, ...times(2, (index) => kernel(declared, index, random)), instances(9, random)].join(
    "\n",
  );
}
