import type { Implementation } from "../../backend/backend.ts";
import { Status } from "../../backend/cpu/abi.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { type BinaryName, binaryNames } from "./codes.ts";
import { divisionByZero } from "./division.ts";
import { block, writeLoop } from "./loop.cpu.ts";

export const binaryCpu = (name: BinaryName): Implementation<undefined> => {
  const code = binaryNames.indexOf(name);
  return {
    run({ inputs, outputs: [output] }) {
      const [a, b] = inputs;
      block[0] = code;
      block[1] = dtypeFacts[a!.dtype].code;
      writeLoop(2, output!, inputs);
      const { native } = cpuLibrary();
      const out = output!.storage.hostBytes();
      const status = native.orchard_cpu_binary(block, a!.storage.hostBytes(), b!.storage.hostBytes(), out);
      if (status === Status.invalidArgument) throw divisionByZero(name); // the codes are right
      check(native, status, name);
    },
  };
};
