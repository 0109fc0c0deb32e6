/**
 * Calls with batched operands: each runs once for all examples if a rule says how, else once for each example.
 *
 * A rule sees the operands of the latest level, with all examples along a first axis. Operands may also be batched at
 * earlier levels; the calls of the rule then come here again.
 */
import { warnOnce } from "../../core/warn.ts";
import { makeAbstract } from "../../tensor/abstract.ts";
import {
  allExamples,
  BatchedMemory,
  type BatchLevel,
  batched,
  batchOf,
  exampleOf,
  VmapError,
} from "../../tensor/batched.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import type { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { empty } from "../allocation.ts";
import { executeInto, executeMany } from "../dispatch.ts";
import { type LiftedCall, type Lifting, liftBatched } from "../lifted.ts";
import { primitiveOf } from "../primitive.ts";
import { type Crossing, crossBy } from "./examples.ts";
import { attributesOf, startsIn } from "./random.ts";
import type { Operand } from "./rule.ts";
import { ruleOf } from "./rules.ts";

/** @internal Makes dispatch run calls with batched operands, and rules of the caller use these operations. */
export function enableBatching(crossing: Crossing): void {
  crossBy(crossing);
  liftBatched(batchedCalls);
}

const batchedCalls: Lifting = {
  lifts: (operands, attributes) => operands.some(({ storage }) => storage.batch) || startsIn(attributes) !== undefined,
  run(call) {
    const level = latest(call.inputs, call.attributes);
    const results = runAll(call, level);
    return results.map((result) => {
      const example = batched(result, 0, level);
      result.dispose();
      return example;
    });
  },
  runInto(call, outputs) {
    const level = latest([...call.inputs, ...outputs], call.attributes);
    for (const { storage, dtype } of outputs) if (!isAt(storage, level)) promote(call.operation, storage, dtype, level);
    const targets = outputs.map((output) => allExamples(output));
    const prepared = startsIn(call.attributes) ? null : ruleOf(call, operandsOf(call.inputs, level), outputs);
    if (prepared && !prepared.finish) {
      executeInto(call.primitive, prepared.inputs, targets, prepared.attributes as never);
      return;
    }
    reportLoop(call);
    for (let at = 0; at < level.size; at++) {
      const inputs = call.inputs.map((input) => (isAt(input.storage, level) ? exampleOf(input, at) : input));
      const into = outputs.map((output) => exampleOf(output, at));
      executeInto(call.primitive, inputs, into, attributesOf(call.attributes, level, at) as never);
    }
  },
};

const isAt = ({ batch }: Storage, level: BatchLevel): boolean =>
  batch !== undefined && (batch as BatchedMemory).level === level;

/** Returns the latest `vmap` level of the operands and of the random numbers. */
function latest(operands: readonly Tensor[], attributes: unknown): BatchLevel {
  let found = startsIn(attributes)?.level;
  for (const operand of operands) {
    const level = batchOf(operand)?.level;
    if (level && (!found || level.id > found.id)) found = level;
  }
  return found!;
}

const operandsOf = (inputs: readonly Tensor[], level: BatchLevel): Operand[] =>
  inputs.map((input) =>
    isAt(input.storage, level) ? { tensor: allExamples(input), isBatched: true } : { tensor: input, isBatched: false },
  );

/** Returns the results with all examples along a first axis. */
function runAll(call: LiftedCall, level: BatchLevel): Tensor[] {
  const { primitive, inputs, specs, attributes, operation } = call;
  const prepared = startsIn(attributes) ? null : ruleOf(call, operandsOf(inputs, level), specs);
  if (prepared) {
    const all = prepared.specs ?? specs.map(({ shape, dtype }) => ({ shape: [level.size, ...shape], dtype }));
    const results = executeMany(primitive, prepared.inputs, all, prepared.attributes as never, operation);
    return prepared.finish ? prepared.finish(results) : results;
  }
  reportLoop(call);
  const results = specs.map(({ shape, dtype }) => empty([level.size, ...shape], dtype, {}, operation));
  for (let at = 0; at < level.size; at++) {
    const each = inputs.map((input) => operandOf(primitive.name, input, level, at));
    const made = executeMany(primitive, each, specs, attributesOf(attributes, level, at) as never, operation);
    for (const [index, one] of made.entries()) {
      const result = results[index];
      const { shape, strides, offset } = result;
      const place = new Tensor(result.storage, one.dtype, shape.slice(1), strides.slice(1), offset + at * strides[0]);
      executeInto(primitiveOf("copy"), [one], [place], undefined as never);
      place.dispose();
      one.dispose();
    }
  }
  return results;
}

/**
 * Returns the operand of one example. Gradient rules read saved statistics as dense memory from its start. A view of
 * one example does not have this layout, so saved statistics are copied.
 */
function operandOf(primitive: string, input: Tensor, level: BatchLevel, at: number): Tensor {
  if (!isAt(input.storage, level)) return input;
  const example = exampleOf(input, at);
  if (!/Backward|Gradient/.test(primitive)) return example;
  const { shape, dtype } = example;
  return executeMany(primitiveOf("copy"), [example], [{ shape, dtype }], undefined as never)[0];
}

/** Gives every example a copy of a storage's contents, so that values that differ can be written into it. */
function promote(operation: string, storage: Storage, dtype: Tensor["dtype"], level: BatchLevel): void {
  if (storage.serial < level.firstSerial)
    throw new VmapError(
      operation,
      "writesOutside",
      "values that differ between the examples of vmap can't be written into a tensor from outside of it; use the " +
        "operation that returns a new tensor",
    );
  const { byteLength } = storage.memory;
  const earlier = storage.batch as BatchedMemory | undefined;
  const bytes = earlier ? byteLength - Math.max(0, earlier.level.size - 1) * earlier.step : byteLength;
  const count = Math.floor(bytes / bytesOf(dtype)); // the memory of an empty tensor may have a few bytes
  const copies = empty([level.size, count], dtype, {}, operation);
  if (storage.isAbstract) makeAbstract(copies.storage);
  else {
    const old = new Tensor(storage, dtype, [count]);
    executeInto(primitiveOf("copy"), [old], [copies], undefined as never);
    old.dispose();
  }
  storage.moveTo(new BatchedMemory(copies.storage, level, count * bytesOf(dtype), level.size * count * bytesOf(dtype)));
  copies.dispose();
}

function reportLoop({ primitive: { name, family } }: Pick<LiftedCall, "primitive">): void {
  if (family === "random" || name === "dropout") return;
  const advice = family === "kernel" ? "give metalKernel() a vmap rule" : "there is no rule for this call";
  warnOnce(`${name} runs once for each example of vmap: ${advice}`);
}
