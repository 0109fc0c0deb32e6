import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { linesOf, writeLines } from "./lines.ts";
import { type ScanAttributes, type ScanName, scanNames } from "./names.ts";

const block = new Float64Array(64);

/** `orchard_cpu_scan`. */
export const scanCpu = (name: ScanName): Implementation<ScanAttributes> => ({
  run({ inputs: [x, second], outputs: [output], attributes: { axis, reverse } }) {
    const a = second ?? x!;
    const head = [scanNames.indexOf(name), dtypeFacts[x!.dtype].code, dtypeFacts[output!.dtype].code];
    writeLines(block, head, linesOf([x!, a, output!], axis, reverse));
    const { native } = cpuLibrary();
    const [from, coefficients, to] = [x!, a, output!].map(({ storage }) => storage.hostBytes());
    check(native, native.orchard_cpu_scan(block, from!, coefficients!, to!), name);
  },
});
