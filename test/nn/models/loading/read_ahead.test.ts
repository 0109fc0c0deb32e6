/** Reading ahead rejects ranges outside of the tensor's memory. */
import { expect, test } from "bun:test";
import { readAheadCall } from "../../../../src/nn/models/loading/read_ahead.ts";

test("a range that leads out of its memory is rejected", () => {
  const x = new Uint8Array(10_000);
  readAheadCall("load", { offset: 10_000, bytes: 0 }, [x]);
  readAheadCall("load", { offset: 5, bytes: 9995 }, [x]);
  expect(() => readAheadCall("load", { offset: 5, bytes: 9996 }, [x])).toThrow(/operand 0 \(x\)/);
  expect(() => readAheadCall("load", { offset: -1, bytes: 2 }, [x])).toThrow(/operand 0 \(x\)/);
});
