/** Decodes dispatches of elementwise kernels: the operation, and the location of each operand's elements. */
import { tupleOf } from "../../core/tuples.ts";
import { MAX_RANK } from "../../tensor/shape.ts";
import { type Range, rangesOf } from "./dispatches.ts";
import type { DeviceCall } from "./recording.ts";

/** An operand of an elementwise kernel. */
export interface Place extends Range {
  /** The Metal Shading Language type of the elements. */
  readonly type: string;
  /** The loop over the operand's elements; null if they are contiguous: element n is at index n. */
  readonly nest: Nest | null;
}

/** A loop over one operand: see `kernels/common/loop.h`. */
export interface Nest {
  readonly shape: readonly bigint[];
  readonly strides: readonly bigint[];
  readonly start: bigint;
}

/** An elementwise operation on `count` elements. */
export interface Instruction {
  readonly inputs: readonly Place[];
  readonly output: Place;
  readonly count: number;
  /** The header that declares the functions of the expression. */
  readonly header: string | undefined;
  /** Returns the result as an expression of the operands. */
  readonly expression: (operands: readonly string[]) => string;
}

/** The semantics of a kernel: its expression, and the types of its operands, the last of which is the result's. */
type Meaning = Pick<Instruction, "expression" | "header"> & { readonly types: readonly string[] };

const kernelName = /^(unary|binary|ternary|where|copy)(_predicate)?_([a-z]+)(?:_([a-z]+))?$/;

/** Returns the semantics of a kernel; undefined if it is not elementwise. */
function meaningOf({ file, name, constants = [] }: NonNullable<DeviceCall["kernel"]>): Meaning | undefined {
  const match = kernelName.exec(name);
  if (!match || !file.startsWith("elementwise/")) return undefined;
  const [, family, predicate, type, to] = match as unknown as [string, string, string | undefined, string, string];
  if (family === "copy") return { types: [type, to], header: undefined, expression: ([x]) => `${to}(${x})` };
  if (family === "where")
    return { types: ["bool", type, type, type], header: undefined, expression: ([c, a, b]) => `(${c} ? ${a} : ${b})` };
  const [header, operation] = [`elementwise/${family}.h`, `${constants[1]}u`];
  const compute = `orchard::${family}::Compute<${type}>`;
  const types = new Array<string>({ unary: 1, binary: 2, ternary: 3 }[family]!).fill(type);
  if (predicate === undefined)
    return {
      types: [...types, type],
      header,
      expression: (operands) => `${compute}::run(${[operation, ...operands].join(", ")})`,
    };
  return {
    types: [...types, "bool"],
    header,
    expression(operands) {
      const numbers = operands.map((operand) => `${compute}::Number(${operand})`);
      return `orchard::${family}::test(${[operation, ...numbers].join(", ")})`;
    },
  };
}

/** Returns the operation of a dispatch; undefined if the kernel is not elementwise or its result is not contiguous. */
export function instructionOf(call: DeviceCall): Instruction | undefined {
  const { kernel, block, operands, inline } = call;
  const meaning = kernel && meaningOf(kernel);
  if (!meaning || operands.length !== meaning.types.length) return undefined;
  const loop = loopIn(new DataView(block.buffer, block.byteOffset), inline[0].at);
  const places = rangesOf(call).map((range, at) => ({ ...range, type: meaning.types[at], nest: nestOf(loop, at) }));
  const output = places.pop()!;
  if (output.nest !== null || loop.count === 0n) return undefined;
  return { ...meaning, inputs: places, output, count: Number(loop.count) };
}

interface Loop {
  readonly shape: readonly bigint[];
  readonly strides: readonly (readonly bigint[])[];
  readonly start: readonly bigint[];
  readonly count: bigint;
}

const LOOP_OPERANDS = 4;

/** Decodes a `LoopNest` of `kernels/common/loop.h`. */
function loopIn(view: DataView, from: number): Loop {
  const longs = (first: number, count: number) =>
    Array.from({ length: count }, (_, at) => view.getBigInt64(from + 8 * (first + at), true));
  const starts = MAX_RANK * (1 + LOOP_OPERANDS);
  const [count, rank] = tupleOf(longs(starts + LOOP_OPERANDS, 2), 2);
  const axes = Number(rank);
  return {
    shape: longs(0, axes),
    strides: Array.from({ length: LOOP_OPERANDS }, (_, at) => longs(MAX_RANK * (1 + at), axes)),
    start: longs(starts, LOOP_OPERANDS),
    count,
  };
}

/** Returns the loop of an operand; null if the operand is contiguous. */
function nestOf({ shape, strides, start }: Loop, operand: number): Nest | null {
  const own = strides[operand];
  let step = 1n;
  let isDense = start[operand] === 0n;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    isDense &&= own[axis] === step || shape[axis] === 1n;
    step *= shape[axis];
  }
  return isDense ? null : { shape, strides: own, start: start[operand] };
}
