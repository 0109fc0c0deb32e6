/**
 * Generates the Metal Shading Language of a chain: one line per instruction, for one element. Without a product, each
 * thread computes one element.
 */
import { productMemory, productStatements } from "./bodies.ts";
import { type Chain, type Head, isSamePlace } from "./chains.ts";
import { attribute, type Buffers } from "./dispatches.ts";
import type { Place } from "./instructions.ts";

/** The kernel's name. */
export const CHAIN = "compiled_chain";

const floats: ReadonlySet<string> = new Set(["float", "half", "bfloat"]);

/** The buffers of a chain's operands. */
export interface ChainPlaces {
  readonly buffers: Buffers;
  readonly loads: readonly number[];
  readonly stores: readonly number[];
  /** The operands of the product. */
  readonly head: readonly number[];
}

/** Returns the source of a kernel. It contains no sizes, so that chains of other shapes can share it. */
export const sourceOf = (chain: Chain, places: ChainPlaces): string =>
  chain.head ? sourceWithProduct(chain, chain.head, places) : sourceOfElements(chain, places);

function sourceOfElements(chain: Chain, { buffers, loads, stores }: ChainPlaces): string {
  const inputs = loads.map((at, load) => buffers.pointer(at, `device const ${chain.loads[load]!.type} *`));
  const outputs = stores.map((at, store) => buffers.pointer(at, `device ${outputOf(chain, store).type} *`));
  return `${startOf(chain, [])}
kernel void ${CHAIN}(
    ${buffers.declarations().join(",\n    ")},
    constant Chain &chain ${attribute(`buffer(${buffers.ranges.length})`)},
    uint2 position ${attribute("thread_position_in_grid")},
    uint2 grid ${attribute("threads_per_grid")}) {
    const ulong element = loop_element(position, grid);
    if (element >= chain.count) return;
    ${linesOf(chain, inputs, outputs).join("\n    ")}
}
`;
}

function sourceWithProduct(
  chain: Chain,
  { tiled, isStored }: Head,
  { buffers, loads, stores, head }: ChainPlaces,
): string {
  const { out, type } = tiled;
  const fields = [
    ...loads.map((at, load) => [at, `device const ${chain.loads[load]!.type} *`, `input_${load}`] as const),
    ...stores.map((at, store) => [at, `device ${outputOf(chain, store).type} *`, `output_${store}`] as const),
    [head[2]!, `device const ${out} *`, "product_input"] as const,
    ...(isStored ? [[head[3]!, `device ${out} *`, "product_out"] as const] : []),
  ];
  const lines = [
    `const ${out} before = product_element(product, product_input + input_start, row, column, sum);`,
    `const ${out} product_value = rounded(before, chain->zero);`,
    "const ulong element = ulong(out_start + element_offset(product, PRODUCT_OUT, row, column));",
    ...(isStored ? ["product_out[element] = product_value;"] : []),
    ...linesOf(
      chain,
      loads.map((_, at) => `input_${at}`),
      stores.map((_, at) => `output_${at}`),
    ).map((line) => line.replaceAll("chain.", "chain->")),
  ];
  const factors = head.slice(0, 2).map((at) => buffers.pointer(at, `device const ${type} *`));
  const next = buffers.ranges.length;
  const values = [...fields.map(([at, pointer]) => buffers.pointer(at, pointer)), "&chain"];
  const result = `const ChainResult result = {${values.join(", ")}};`;
  return `${startOf(chain, ["matmul/tiled.h"])}
// Computes the chain for the elements of a product.
struct ChainResult {
    ${[...fields.map(([, pointer, name]) => `${pointer}${name};`), "constant Chain *chain;"].join("\n    ")}

    void write(
        constant Product &product, long input_start, long out_start, long row, long column, float sum) {
        ${lines.join("\n        ")}
    }
};

kernel void ${CHAIN}(
    ${buffers.declarations().join(",\n    ")},
    constant Chain &chain ${attribute(`buffer(${next})`)},
    constant Product &product ${attribute(`buffer(${next + 1})`)},
    uint3 group ${attribute("threadgroup_position_in_grid")},
    uint thread_index ${attribute("thread_index_in_threadgroup")},
    uint simdgroup_index ${attribute("simdgroup_index_in_threadgroup")},
    uint lane ${attribute("thread_index_in_simdgroup")}) {
    threadgroup ${productMemory(tiled)};${productStatements(tiled, factors, "product", result)}
}
`;
}

const outputOf = ({ instructions, stores }: Chain, store: number): Place => instructions[stores[store]!]!.output;

const nestsOf = ({ loads }: Chain) => loads.filter(({ nest }) => nest !== null);

/** Returns the headers and the struct of the parameters. */
function startOf(chain: Chain, others: readonly string[]): string {
  const { instructions, head } = chain;
  const nests = nestsOf(chain);
  const headers = new Set(["elementwise/chain.h", ...others, ...instructions.flatMap(({ header }) => header ?? [])]);
  const what = `${instructions.length} elementwise operations${head ? " after a product" : ""}`;
  return `// A chain of a compiled function: ${what}.

${[...headers].map((header) => `#include "${header}"`).join("\n")}

struct Chain {
    ulong count;
    ulong zero;
${nests.length > 0 ? `    Nest<1> nests[${nests.length}];\n` : ""}};
`;
}

/** Returns the statements for `element`. @param inputs pointers to the loads @param outputs pointers to the stores */
function linesOf(chain: Chain, inputs: readonly string[], outputs: readonly string[]): string[] {
  const { instructions, loads, stores } = chain;
  const nests = nestsOf(chain);
  return [
    ...loads.map((load, at) => {
      const place = load.nest ? `loop_offset(chain.nests[${nests.indexOf(load)}], 0, element)` : "element";
      return `const ${load.type} loaded_${at} = ${inputs[at]}[${place}];`;
    }),
    ...instructions.map((instruction, at) => `const ${instruction.output.type} x${at} = ${resultOf(chain, at)};`),
    ...stores.map((at, store) => `${outputs[store]}[element] = x${at};`),
  ];
}

function resultOf({ instructions, loads, head }: Chain, at: number): string {
  const { inputs, expression, output } = instructions[at]!;
  const variableOf = (input: Place): string => {
    if (head?.output.entry === input.entry) return "product_value";
    const written = instructions.slice(0, at).findIndex((earlier) => earlier.output.entry === input.entry);
    return written >= 0 ? `x${written}` : `loaded_${loads.findIndex((load) => isSamePlace(load, input))}`;
  };
  const value = expression(inputs.map(variableOf));
  return floats.has(output.type) ? `rounded(${value}, chain.zero)` : value;
}
