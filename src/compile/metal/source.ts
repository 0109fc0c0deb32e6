/** Writes the Metal Shading Language of a chain: one thread per element, and one line per instruction. */

import { type Chain, isSamePlace } from "./chains.ts";
import type { Place } from "./instructions.ts";

/** The kernel's name. */
export const CHAIN = "compiled_chain";

/** Types of floats, with the unsigned type of the same size. */
const bitsOf: Readonly<Record<string, string>> = { float: "uint", half: "ushort", bfloat: "ushort" };

/**
 * Returns the text of a kernel. It has no sizes, so that chains of other shapes share it.
 *
 * A compiler may contract a product and the sum that follows it to one operation that rounds once. Plain calls round
 * twice, since the product passes through memory. So each float passes through an exclusive or with 0, which the
 * compiler can't see to be 0.
 */
export function sourceOf(chain: Chain): string {
  const { instructions, loads, stores } = chain;
  const nests = loads.filter(({ nest }) => nest !== null);
  const headers = [...new Set(["common/loop.h", ...instructions.flatMap(({ header }) => header ?? [])])];
  const buffers = [
    ...loads.map(({ type }, at) => `device const ${type} *input_${at} [[buffer(${at})]]`),
    ...stores.map((of, at) => {
      const { type } = instructions[of]!.output;
      return `device ${type} *output_${of} [[buffer(${loads.length + at})]]`;
    }),
    `constant Chain &chain [[buffer(${loads.length + stores.length})]]`,
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

#include <metal_stdlib>
using namespace metal;

${headers.map((header) => `#include "${header}"`).join("\n")}

struct Chain {
    ulong count;
    ulong zero;
${nests.length > 0 ? `    Nest<1> nests[${nests.length}];\n` : ""}};

kernel void ${CHAIN}(
    ${buffers.join(",\n    ")},
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
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
  const bits = bitsOf[output.type];
  return bits ? `as_type<${output.type}>(${bits}(as_type<${bits}>(${value}) ^ ${bits}(chain.zero)))` : value;
}
