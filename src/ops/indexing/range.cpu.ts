import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import { blockOf } from "./block.cpu.ts";
import { distinct, type IndexRange, indexAt, indexError } from "./indices.ts";

const out = new Float64Array(1);

/** @throws {ShapeError} `indexOutOfRange` for the first index that is. */
export function checkRangeOnCpu(range: IndexRange): void {
  const { native } = cpuLibrary();
  const index = distinct(range.index);
  const nest = collapse(index.shape, [index.strides]);
  const block = blockOf([dtypeFacts[index.dtype].code, index.offset, range.size, range.except ?? 0], nest);
  check(native, native.orchard_cpu_find_outside(block, index.storage.hostBytes(), out), range.operation);
  index.dispose();
  const position = out[0]!;
  if (position >= 0) throw indexError(range, position, indexAt(range, position));
}
