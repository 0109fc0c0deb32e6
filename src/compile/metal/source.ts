/**
 * Generates the Metal Shading Language of a chain: one line per instruction, for one element. Without a product, each
 * thread computes one element.
 */
import { MAX_RANK } from "../../tensor/shape.ts";
import { productMemory, productStatements } from "./bodies.ts";
import { type Chain, type Head, isSamePlace } from "./chains.ts";
import { attribute, type Buffers, rangesOf } from "./dispatches.ts";
import type { Nest, Place } from "./instructions.ts";
import { productOf } from "./products.ts";

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

/** Binds the operands of a chain. */
export function placesIn(buffers: Buffers, { loads, stores, instructions, head }: Chain): ChainPlaces {
  const operands = head ? rangesOf(head.call).slice(0, head.isStored ? 4 : 3) : [];
  if (head && !productOf(head.call).hasInput) operands[2] = operands[0]; // not read; the plain call binds its result
  return {
    buffers,
    loads: loads.map((place) => buffers.add(place, false)),
    stores: stores.map((at) => buffers.add(instructions[at].output, true)),
    head: operands.map((range, at) => buffers.add(range, at === 3)),
  };
}

/** Returns the bytes of the kernel's struct `Chain`: the count, a zero, and a `Nest<1>` for each strided operand. */
export function chainParameters({ instructions, loads }: Chain): Uint8Array {
  const nests = loads.flatMap(({ nest }) => nest ?? []);
  const count = BigInt(instructions[0].count);
  const longs = [count, 0n, ...nests.flatMap((nest) => longsOf(nest, count))];
  return new Uint8Array(new BigInt64Array(longs).buffer);
}

const longsOf = ({ shape, strides, start }: Nest, count: bigint): bigint[] => {
  const padded = (values: readonly bigint[]) => Array.from({ length: MAX_RANK }, (_, at) => values[at] ?? 0n);
  return [...padded(shape), ...padded(strides), start, count, BigInt(shape.length)];
};

/** Returns the source of a kernel. It contains no sizes, so that chains of other shapes can share it. */
export const sourceOf = (chain: Chain, places: ChainPlaces): string =>
  chain.head ? sourceWithProduct(chain, chain.head, places) : sourceOfElements(chain, places);

function sourceOfElements(chain: Chain, { buffers, loads, stores }: ChainPlaces): string {
  const inputs = loads.map((at, load) => buffers.pointer(at, `device const ${chain.loads[load].type} *`));
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

/** The parts of a kernel that computes a chain for the elements of a product. */
export interface ProductParts {
  /** The headers, and the structs `Chain` and `ChainResult`. */
  readonly declarations: string;
  /** The pointers to the factors. */
  readonly factors: readonly string[];
  /** The declaration of the variable `result`, for which `chain` is in scope. */
  readonly result: string;
}

export function productParts(chain: Chain, { tiled, isStored }: Head, places: ChainPlaces): ProductParts {
  const { buffers, loads, stores, head } = places;
  const { out, type } = tiled;
  const fields = [
    ...loads.map((at, load) => [at, `device const ${chain.loads[load].type} *`, `input_${load}`] as const),
    ...stores.map((at, store) => [at, `device ${outputOf(chain, store).type} *`, `output_${store}`] as const),
    [head[2], `device const ${out} *`, "product_input"] as const,
    ...(isStored ? [[head[3], `device ${out} *`, "product_out"] as const] : []),
  ];
  const lines = [
    `const ${out} before = product_element(product, product_input + input_start, row, column, sum);`,
    `const ${out} product_value = ${chain.isFast ? "before" : "rounded(before, chain->zero)"};`,
    "const ulong element = ulong(out_start + element_offset(product, PRODUCT_OUT, row, column));",
    ...(isStored ? ["product_out[element] = product_value;"] : []),
    ...linesOf(
      chain,
      loads.map((_, at) => `input_${at}`),
      stores.map((_, at) => `output_${at}`),
    ).map((line) => line.replaceAll("chain.", "chain->")),
  ];
  const values = [...fields.map(([at, pointer]) => buffers.pointer(at, pointer)), "&chain"];
  return {
    factors: head.slice(0, 2).map((at) => buffers.pointer(at, `device const ${type} *`)),
    result: `const ChainResult result = {${values.join(", ")}};`,
    declarations: `${startOf(chain, ["matmul/tiled.h"])}
// Computes the chain for the elements of a product.
struct ChainResult {
    ${[...fields.map(([, pointer, name]) => `${pointer}${name};`), "constant Chain *chain;"].join("\n    ")}

    void write(
        constant Product &product, long input_start, long out_start, long row, long column, float sum) {
        ${lines.join("\n        ")}
    }
};
`,
  };
}

function sourceWithProduct(chain: Chain, head: Head, places: ChainPlaces): string {
  const { buffers } = places;
  const { declarations, factors, result } = productParts(chain, head, places);
  const next = buffers.ranges.length;
  return `${declarations}
kernel void ${CHAIN}(
    ${buffers.declarations().join(",\n    ")},
    constant Chain &chain ${attribute(`buffer(${next})`)},
    constant Product &product ${attribute(`buffer(${next + 1})`)},
    uint3 group ${attribute("threadgroup_position_in_grid")},
    uint thread_index ${attribute("thread_index_in_threadgroup")},
    uint simdgroup_index ${attribute("simdgroup_index_in_threadgroup")},
    uint lane ${attribute("thread_index_in_simdgroup")}) {
    threadgroup ${productMemory(head.tiled)};${productStatements(head.tiled, factors, "product", result)}
}
`;
}

const outputOf = ({ instructions, stores }: Chain, store: number): Place => instructions[stores[store]].output;

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

function resultOf({ instructions, loads, head, isFast }: Chain, at: number): string {
  const { inputs, expression, output } = instructions[at];
  const variableOf = (input: Place): string => {
    if (head?.output.entry === input.entry) return "product_value";
    const written = instructions.slice(0, at).findIndex((earlier) => earlier.output.entry === input.entry);
    return written >= 0 ? `x${written}` : `loaded_${loads.findIndex((load) => isSamePlace(load, input))}`;
  };
  const value = expression(inputs.map(variableOf));
  return floats.has(output.type) && !isFast ? `rounded(${value}, chain.zero)` : value;
}
