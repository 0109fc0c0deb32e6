/** Every name in the lists of elementwise operations is defined, with as many operands as its list has. */
import { expect, test } from "bun:test";
import { definitions } from "../../../src/ops/elementwise/define.ts";
import { binaryOperations, ternaryOperations, unaryOperations } from "../../../src/ops/elementwise/primitive.ts";
import "../../../src/index.ts"; // defines the operations

const namesOf = (operands: number): string[] =>
  [...definitions.values()].flatMap((definition) => (definition.operands === operands ? [definition.name] : []));

test.each([
  ["one operand", 1, unaryOperations.names],
  ["two operands", 2, binaryOperations.names],
  ["three operands", 3, ternaryOperations.names],
] as const)("every elementwise operation of %s is defined", (_name, operands, names) => {
  expect(namesOf(operands).sort()).toEqual([...names].sort());
});
