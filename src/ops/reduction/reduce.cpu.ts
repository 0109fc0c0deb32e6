import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import type { LoopNest } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { extremumNames, type ReductionAttributes, type ReductionName, reductionNames } from "./names.ts";
import { reductionNests } from "./nests.ts";

const block = new Float64Array(64);

/** `orchard_cpu_reduce`. */
export function reduceCpu(name: ReductionName): Implementation<ReductionAttributes> {
  const code = reductionNames.indexOf(name);
  const isOrdered = (extremumNames as readonly string[]).includes(name);
  return {
    run({ inputs: [input], outputs: [output, indices], attributes }) {
      writeBlock(code, input!, output!, indices, attributes.parameter);
      const { kept, reduced } = reductionNests(input!, attributes.axes, isOrdered);
      writeNest(writeNest(7, kept), reduced);
      const { native } = cpuLibrary();
      const result = output!.storage.hostBytes();
      const status = native.orchard_cpu_reduce(
        block,
        input!.storage.hostBytes(),
        result,
        indices === undefined ? result : indices.storage.hostBytes(),
      );
      check(native, status, name);
    },
  };
}

function writeBlock(code: number, input: Tensor, output: Tensor, indices: Tensor | undefined, parameter: number) {
  block[0] = code;
  block[1] = dtypeFacts[input.dtype].code;
  block[2] = input.offset;
  block[3] = dtypeFacts[output.dtype].code;
  block[4] = output.offset;
  block[5] = indices?.offset ?? 0;
  block[6] = parameter;
}

/** Rank, shape, strides of each operand. Returns where the next entry goes. */
function writeNest(start: number, { shape, strides }: LoopNest): number {
  let at = start;
  block[at++] = shape.length;
  for (const size of shape) block[at++] = size;
  for (const own of strides) for (const stride of own) block[at++] = stride;
  return at;
}
