/** Calls functions of the cpu dylib with a block of named fields and the storages of the operands. */
import { dylibAdvice } from "../../core/commands.ts";
import { BackendError, type OrchardError } from "../../core/errors.ts";
import { type Later, resolved } from "../../core/parameters.ts";
import { type Capture, capture } from "../../observe/capture.ts";
import { plainList } from "../../tensor/frozen.ts";
import type { LoopNest } from "../../tensor/shape.ts";
import { MAX_RANK } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { array, type CpuField, cpuMembers, type Field, type ValuesOf, whole } from "../fields.ts";
import { cpuLibrary, type Native } from "./loader.ts";
import { errorOf } from "./status.ts";
import { nativeFunction, nativeOrdinals } from "./tables.ts";

/** A field of a block, with its name and offset in doubles. */
export interface BlockField {
  readonly name: string;
  readonly field: CpuField<never>;
  readonly offset: number;
}

/** The description of a dylib function's parameters in TypeScript. */
export interface CpuCallDescription {
  readonly name: string;
  readonly fields: readonly BlockField[];
  /** Length of the block in doubles, without the operands' byte lengths that follow it. */
  readonly length: number;
  /** The operands' names, results last. */
  readonly operands: readonly string[];
}

/** An operand: a tensor, whose storage address is passed to native code, or an array. */
export type CpuOperand = Tensor | NodeJS.TypedArray | undefined;

/**
 * Runs the function. The dylib gets the byte length of each operand, and rejects calls with out-of-bounds accesses.
 *
 * @param operation the caller's operation, for errors
 * @throws {OrchardError} the error of the dylib's status.
 */
export interface CpuCall<Values> {
  (operation: string, values: Values, operands: readonly CpuOperand[]): void;
  readonly description: CpuCallDescription;
  /** Makes the call, but returns its status instead of throwing. */
  status(values: Values, operands: readonly CpuOperand[]): number;
  /** Returns the error of a status from {@link status}. */
  error(operation: string, status: number): OrchardError;
  /** Returns the call with some fields fixed. Their names are looked up in the dylib's lists only once. */
  with<Fixed extends Partial<Values>>(fixed: Fixed): CpuCall<Omit<Values, keyof Fixed>>;
}

const defined = new Map<string, CpuCallDescription>();

/** All described calls by name. */
export const cpuCalls: ReadonlyMap<string, CpuCallDescription> = defined;

/**
 * Describes a function of the cpu dylib (`ORCHARD_FUNCTION` in C++): the fields of its block in their order, and its
 * operands.
 *
 * @example
 * const call = cpuCall("dropout", { dtype, scale: real, loop: loop(2) }, ["x", "output"]);
 * call("dropout", { dtype: x.dtype, scale: 2, loop: [x, output] }, [x, output]);
 */
export function cpuCall<Fields extends Readonly<Record<string, Field<never>>>>(
  name: string,
  fields: Later<Fields>,
  operands: readonly string[],
): CpuCall<ValuesOf<Fields>> {
  const description = describe(name, fields, operands);
  let block: Float64Array | undefined;
  const blockOf = () => (block ??= new Float64Array(description.length + operands.length));
  return callOf(description, blockOf, {});
}

/** @param blockOf returns the block that calls with different fixed fields share */
function callOf<Values>(
  description: CpuCallDescription,
  blockOf: () => Float64Array,
  fixed: Partial<Values>,
): CpuCall<Values> {
  let run: Run | undefined;
  const status = (values: Values, given: readonly CpuOperand[]): number => {
    run ??= compile(description, { block: blockOf(), width: widthOf(description), fixed });
    if (capture !== null) return recorded(capture, run, values, given);
    return run(values, given, cpuLibrary().native);
  };
  const recorded = (into: Capture, body: Run, values: Values, operands: readonly CpuOperand[]): number => {
    const ordinal = ordinalOf(description);
    const { native } = cpuLibrary();
    return into.call(
      { description, ordinal, rows: 0, values: [values], operands },
      () => body(values, operands, native),
      blockOf,
    );
  };
  const error = (operation: string, code: number): OrchardError =>
    errorOf(cpuLibrary().native, code, operation, description.operands);
  const call = (operation: string, values: Values, given: readonly CpuOperand[]): void => {
    const code = status(values, given);
    if (code !== 0) throw error(operation, code);
  };
  const more = (added: Partial<Values>) => callOf<Values>(description, blockOf, { ...fixed, ...added });
  return Object.assign(call, { description, status, error, with: more as CpuCall<Values>["with"] });
}

/** Registers a call by name. @throws {TypeError} if the name is already used */
export function describe(
  name: string,
  fields: Later<Readonly<Record<string, Field<never>>>>,
  operands: readonly string[],
): CpuCallDescription {
  if (defined.has(name)) throw new TypeError(`the cpu call ${name} is defined twice`);
  const description = new Description(name, fields, operands);
  defined.set(name, description);
  return description;
}

/** Describes a call; its fields are laid out on first use, since a program uses few of the calls that it imports. */
class Description implements CpuCallDescription {
  #layout: Pick<CpuCallDescription, "fields" | "length"> | undefined;

  constructor(
    readonly name: string,
    private readonly declared: Later<Readonly<Record<string, Field<never>>>>,
    readonly operands: readonly string[],
  ) {}

  get fields(): readonly BlockField[] {
    return this.layout().fields;
  }

  get length(): number {
    return this.layout().length;
  }

  private layout(): Pick<CpuCallDescription, "fields" | "length"> {
    this.#layout ??= layOut(this.name, resolved(this.declared));
    return this.#layout;
  }
}

function layOut(
  name: string,
  declared: Readonly<Record<string, Field<never>>>,
): Pick<CpuCallDescription, "fields" | "length"> {
  let length = 0;
  const fields = Object.entries(declared).map(([field, { cpu }]): BlockField => {
    if (!cpu) throw new TypeError(`field ${field} of the cpu call ${name} is only for metal`);
    const offset = length;
    length += cpu.length;
    return { name: field, field: cpu, offset };
  });
  return { fields, length };
}

/** The byte length of an omitted operand. */
export const LEFT_OUT = -1;

/** Writes the block, runs the function and returns the status. */
type Run = (values: unknown, operands: readonly CpuOperand[], native: Native) => number;

interface RunOptions {
  readonly block: Float64Array;
  /** Number of operands of the dylib's function. */
  readonly width: number;
  readonly fixed: Readonly<Record<string, unknown>>;
}

/**
 * Compiles the call: names, offsets and fixed fields are constants, so no loop over them is needed. Loops would take a
 * fifth of the time of a one-element operation.
 */
function compile(description: CpuCallDescription, { block, width, fixed }: RunOptions): Run {
  const { fields, length, operands } = description;
  const parameters = fields.map((_, index) => `write${index}`);
  // Get addresses first: accessing a device's memory may recompute an operation and use this call recursively.
  const addresses = operands.map((_, index) => `const bytes${index} = bytesOf(operands[${index}], block);`);
  const writes = fields.flatMap((field, index) =>
    field.name in fixed
      ? constantsOf(field, fixed[field.name]).map((number, at) => `block[${field.offset + at}] = ${number};`)
      : [writeOf(field, index)],
  );
  // Sizes are written last, since a recursive call may have written to the block.
  const sizes = operands.map(
    (_, index) => `block[${length + index}] = bytes${index} === block ? ${LEFT_OUT} : bytes${index}.byteLength;`,
  );
  // `bun:ffi` does not accept null for a buffer; the block replaces omitted operands.
  const given = Array.from({ length: width }, (_, index) => (index < operands.length ? `bytes${index}` : "block"));
  const passed = [ordinalOf(description), "block", block.byteLength, ...given];
  const run = `return native.orchard_cpu_run${width}(${passed.join(", ")});`;
  const make = new globalThis.Function(
    ...["block", "ordinals", "bytesOf", ...parameters],
    `return (values, operands, native) => { ${[...addresses, ...writes, ...sizes, run].join(" ")} };`,
  ) as (...values: readonly unknown[]) => Run;
  return make(block, nativeOrdinals, bytesOf, ...fields.map(({ field }) => field.write));
}

/** Returns the statement that writes a field from the values. */
function writeOf({ name, field: { inline }, offset }: BlockField, index: number): string {
  if (inline === undefined) return `write${index}(block, ${offset}, values.${name}, ordinals);`;
  return `block[${offset}] = ${inline(`values.${name}`)};`;
}

/** Returns the memory of an operand; the block if it is omitted. */
export const bytesOf = (operand: CpuOperand, block: Float64Array): NodeJS.TypedArray =>
  operand === undefined ? block : "storage" in operand ? operand.storage.hostBytes() : operand;

/**
 * The numbers of operands of the dylib's functions. Each argument adds cost, so the smallest sufficient one is used.
 * `bun:ffi` passes at most 32 arguments.
 */
const widths: readonly number[] = [3, 6, 16, 29];

function widthOf({ name, operands }: CpuCallDescription): number {
  const found = widths.find((width) => operands.length <= width);
  if (found === undefined)
    throw new TypeError(`expected at most ${widths.at(-1)} operands of the cpu call ${name}, got ${operands.length}`);
  return found;
}

/** Returns the doubles of a fixed field. */
function constantsOf({ field }: BlockField, value: unknown): number[] {
  const block = new Float64Array(field.length);
  field.write(block, 0, value as never, nativeOrdinals);
  return [...block];
}

/** Returns the function's ordinal after checking its block and operands against the dylib. */
export function ordinalOf({ name, length, operands }: CpuCallDescription): number {
  const found = nativeFunction(name);
  if (!found) throw new BackendError("cpu", "abiMismatch", `the dylib has no function ${name}; ${dylibAdvice()}`);
  if (found.blockBytes === length * 8 && found.operands === operands.length) return found.ordinal;
  throw new BackendError(
    "cpu",
    "abiMismatch",
    `${name}: expected a dylib that takes ${length * 8} bytes and ${operands.length} operands, got one that takes ` +
      `${found.blockBytes} and ${found.operands}; ${dylibAdvice()}`,
  );
}

const nestFields = (operands: number) => ({
  rank: whole,
  shape: array(whole, MAX_RANK),
  strides: array(array(whole, MAX_RANK), operands, "operands"),
});

/** A loop nest over operands: rank, shape, and each operand's strides (`NestBlock` in `native/cpu/nest.h`). */
export const nest = (operands: number): Field<LoopNest> => ({
  cpu: {
    type: `NestBlock<${operands}>`,
    ...cpuMembers(nestFields(operands)),
    write(block, at, { shape: sizes, strides }) {
      const shape = plainList(sizes);
      block[at] = shape.length;
      for (let axis = 0; axis < shape.length; axis++) block[at + 1 + axis] = shape[axis];
      for (let operand = 0; operand < operands; operand++) {
        const steps = plainList(strides[operand]);
        for (let axis = 0; axis < shape.length; axis++) block[at + 1 + MAX_RANK * (1 + operand) + axis] = steps[axis];
      }
    },
  },
});

/**
 * The loop of an elementwise call (`LoopBlock` in `native/cpu/elementwise/loop.h`) over its operands, the result last.
 * Operands are broadcast to the result's shape. The dylib merges axes.
 */
export const loop = (operands: number): Field<readonly Tensor[]> => ({
  cpu: {
    type: `LoopBlock<${operands}>`,
    ...cpuMembers({ nest: nest(operands), offsets: array(whole, operands, "operands") }),
    write(block, at, tensors) {
      const shape = plainList(tensors[operands - 1].shape);
      const rank = shape.length;
      block[at] = rank;
      for (let axis = 0; axis < rank; axis++) block[at + 1 + axis] = shape[axis];
      const offsets = at + 1 + MAX_RANK * (1 + operands);
      for (let operand = 0; operand < operands; operand++) {
        const tensor = tensors[operand];
        block[offsets + operand] = tensor.offset;
        writeStrides(block, at + 1 + MAX_RANK * (1 + operand), tensor, rank);
      }
    },
  },
});

/** Writes an operand's strides along the loop's axes; 0 along repeated axes. */
function writeStrides(block: Float64Array, at: number, tensor: Tensor, rank: number): void {
  const shape = plainList(tensor.shape);
  const strides = plainList(tensor.strides);
  const lead = rank - shape.length;
  for (let axis = 0; axis < lead; axis++) block[at + axis] = 0;
  for (let axis = 0; axis < shape.length; axis++) block[at + lead + axis] = shape[axis] === 1 ? 0 : strides[axis];
}
