import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { type TernaryName, ternaryNames } from "./codes.ts";
import { block, writeLoop } from "./loop.cpu.ts";

export const ternaryCpu = (name: TernaryName): Implementation<undefined> => {
  const code = ternaryNames.indexOf(name);
  return {
    run({ inputs, outputs: [output] }) {
      block[0] = code;
      block[1] = dtypeFacts[output!.dtype].code;
      writeLoop(2, output!, inputs);
      const { native } = cpuLibrary();
      const [a, b, c] = inputs.map(({ storage }) => storage.hostBytes());
      check(native, native.orchard_cpu_ternary(block, a!, b!, c!, output!.storage.hostBytes()), name);
    },
  };
};
