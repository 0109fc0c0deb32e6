/** Tests that intermediate results within a fused chain take no memory in the program. */
import { expect, test } from "bun:test";
import { compile, ones, type Tensor, withBackend } from "../../src/index.ts";

const ROWS = 40;
const COLUMNS = 1000;
const BYTES = 4 * ROWS * COLUMNS;

/** Returns the bytes that calls read and write, and the bytes of intermediate results. */
function sizesOf(fuse: boolean): { operands: number; arena: number } {
  const chain = compile((x: Tensor) => x.mul(2).add(1).neg().exp().square().sum(), { fuse });
  for (let call = 0; call < 3; call++) chain(ones([ROWS, COLUMNS]));
  const found = /(\d+) with fusion; arena (\d+) bytes/.exec(chain.explain());
  const [operands, arena] = found!.slice(1).map(Number) as [number, number];
  return { operands, arena };
}

test("fusing a chain of five operations and a sum reads and allocates less memory", () =>
  withBackend("cpu", () => {
    const [plain, fused] = [sizesOf(false), sizesOf(true)];
    // plain: the input, and five results, each written and read; fused: the input and the sum's operand
    expect(plain.operands).toBeGreaterThan(10 * BYTES);
    expect(fused.operands).toBeLessThan(4 * BYTES);
    expect(fused.arena).toBeLessThan(plain.arena);
  }));
