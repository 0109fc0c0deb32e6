/** Generates the Metal Shading Language of a chain: one thread per element, and one line per instruction. */
import { type Chain, isSamePlace } from "./chains.ts";
import type { Place } from "./instructions.ts";

/** The kernel's name. */
export const CHAIN = "compiled_chain";

const floats: ReadonlySet<string> = new Set(["float", "half", "bfloat"]);

const attribute = (text: string): string => `[[${text}]]`;

/** Returns the source of a kernel. It contains no sizes, so that chains of other shapes can share it. */
export function sourceOf(chain: Chain): string {
  const { instructions, loads, stores } = chain;
  const nests = loads.filter(({ nest }) => nest !== null);
  const headers = [...new Set(["elementwise/chain.h", ...instructions.flatMap(({ header }) => header ?? [])])];
  const buffers = [
    ...loads.map(({ type }, at) => `device const ${type} *input_${at} ${attribute(`buffer(${at})`)}`),
    ...stores.map((of, at) => {
      const { type } = instructions[of]!.output;
      return `device ${type} *output_${of} ${attribute(`buffer(${loads.length + at})`)}`;
    }),
    `constant Chain &chain ${attribute(`buffer(${loads.length + stores.length})`)}`,
  ];
  const lines = [
    ...loads.map(({ type, nest }, at) => {
      const place = nest ? `loop_offset(chain.nests[${nests.indexOf(loads[at]!)}], 0, element)` : "element";
      return `const ${type} loaded_${at} = input_${at}[${place}];`;
    }),
    ...instructions.map((instruction, at) => `const ${instruction.output.type} x${at} = ${resultOf(chain, at)};`),
    ...stores.map((at) => `output_${at}[element] = x${at};`),
  ];
  return `// A chain of ${instructions.length} elementwise operations of a compiled function.

${headers.map((header) => `#include "${header}"`).join("\n")}

struct Chain {
    ulong count;
    ulong zero;
${nests.length > 0 ? `    Nest<1> nests[${nests.length}];\n` : ""}};

kernel void ${CHAIN}(
    ${buffers.join(",\n    ")},
    uint2 position ${attribute("thread_position_in_grid")},
    uint2 grid ${attribute("threads_per_grid")}) {
    const ulong element = loop_element(position, grid);
    if (element >= chain.count) return;
    ${lines.join("\n    ")}
}
`;
}

function resultOf({ instructions, loads }: Chain, at: number): string {
  const { inputs, expression, output } = instructions[at]!;
  const variableOf = (input: Place): string => {
    const written = instructions.slice(0, at).findIndex((earlier) => earlier.output.entry === input.entry);
    return written >= 0 ? `x${written}` : `loaded_${loads.findIndex((load) => isSamePlace(load, input))}`;
  };
  const value = expression(inputs.map(variableOf));
  return floats.has(output.type) ? `rounded(${value}, chain.zero)` : value;
}
