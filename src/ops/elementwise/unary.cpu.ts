import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { type UnaryName, unaryNames } from "./codes.ts";
import { block, writeLoop } from "./loop.cpu.ts";

export const unaryCpu = (name: UnaryName): Implementation<undefined> => {
  const code = unaryNames.indexOf(name);
  return {
    run({ inputs, outputs: [output] }) {
      const [input] = inputs;
      block[0] = code;
      block[1] = dtypeFacts[input!.dtype].code;
      writeLoop(2, output!, inputs);
      const { native } = cpuLibrary();
      check(native, native.orchard_cpu_unary(block, input!.storage.hostBytes(), output!.storage.hostBytes()), name);
    },
  };
};
