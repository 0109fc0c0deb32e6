import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { linesOf, writeLines } from "../scan/lines.ts";
import { type SoftmaxAttributes, type SoftmaxName, softmaxNames } from "./names.ts";

const block = new Float64Array(64);

/** `orchard_cpu_softmax`. */
export const softmaxCpu = (name: SoftmaxName): Implementation<SoftmaxAttributes> => ({
  run({ inputs: [x, second], outputs: [output], attributes: { axis } }) {
    const y = second ?? x!;
    const head = [softmaxNames.indexOf(name), dtypeFacts[x!.dtype].code];
    writeLines(block, head, linesOf([x!, y, output!], axis));
    const { native } = cpuLibrary();
    const [from, result, to] = [x!, y, output!].map(({ storage }) => storage.hostBytes());
    check(native, native.orchard_cpu_softmax(block, from!, result!, to!), name);
  },
});
