/** `orchard quantize`: writes the quantized weights of a trained model to one file. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { ArgumentError } from "../core/errors.ts";
import { reportErrors } from "../core/report_errors.ts";
import { saveGguf } from "../io/gguf/save.ts";
import { saveSafetensors } from "../io/safetensors/save.ts";
import { quantizeModel } from "../nn/quantized/model.ts";
import type { AffineBits, GgmlFormat, GroupSize, QuantizedFormat } from "../quant/formats.ts";
import { Generator } from "../random/generator.ts";
import { checkpointsIn, findRun } from "./folder.ts";
import { ggufMetadata } from "./gguf_metadata.ts";
import { toGgufWeights } from "./gguf_names.ts";
import { makeModel } from "./model.ts";
import { settingsKey, tokenizerKey } from "./quantized_file.ts";
import { loadRun } from "./session.ts";
import { tokenizerOf } from "./text.ts";

/** The command-line options. */
export interface QuantizeFlags {
  /** The name of a block format, `affine` or `symmetric`. */
  readonly format: string;
  readonly bits: number;
  readonly groupSize: number;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly out?: string;
}

/** Quantizes a model. Returns the exit code. @param named a run's folder or a checkpoint; by default the latest run */
export function runQuantize(named: string | undefined, flags: QuantizeFlags): Promise<number> {
  return reportErrors(async () => {
    const isFile = named !== undefined && statSync(named, { throwIfNoEntry: false })?.isFile();
    const run = isFile ? undefined : findRun("quantize", named);
    const format = formatOf(flags);
    const out = outOf(flags, format, run);
    const { model: weights, extra } = await loadRun(run === undefined ? named! : checkpointsIn(run), "quantize");
    const settings = { ...extra.settings, dtype: "float32" as const };
    const tokenizer = tokenizerOf(settings, extra.tokenizer);
    const model = makeModel(extra.settings, tokenizer.vocabularySize, new Generator(0)).eval();
    model.loadStateDict(weights);
    model.to("float32");
    const { include, exclude } = flags;
    console.log(String(quantizeModel(model, { format, include, exclude })));
    const trained = extra.tokenizer ? { [tokenizerKey]: JSON.stringify(extra.tokenizer) } : {};
    const metadata = { [settingsKey]: JSON.stringify(settings), ...trained };
    if (out.endsWith(".gguf"))
      await saveGguf(out, toGgufWeights(settings, model.quantizedState()), {
        metadata: { ...ggufMetadata(settings, model, tokenizer), ...metadata },
      });
    else await saveSafetensors(out, model.quantizedState(), { metadata });
    console.log(`${out}: ${statSync(out).size.toLocaleString("en")} bytes`);
    return 0;
  });
}

const isAffine = (format: string): boolean => format === "affine" || format === "symmetric";

/** Returns the format. `quantizeModel` validates it. */
const formatOf = ({ format, bits, groupSize }: QuantizeFlags): QuantizedFormat =>
  isAffine(format)
    ? { bits: bits as AffineBits, groupSize: groupSize as GroupSize, symmetric: format === "symmetric" }
    : (format as GgmlFormat);

/** Returns the output file. GGUF does not support affine weights. */
function outOf({ format, out, bits }: QuantizeFlags, chosenFormat: QuantizedFormat, run: string | undefined): string {
  const extension = typeof chosenFormat === "string" ? "gguf" : "safetensors";
  const name = `model-${isAffine(format) ? `${format}${bits}` : format}.${extension}`;
  if (out === undefined) return join(run ?? ".", name);
  if (!out.endsWith(".gguf") && !out.endsWith(".safetensors"))
    throw new ArgumentError("quantize", "unknownFile", `expected a .gguf or .safetensors file, got ${out}`);
  if (out.endsWith(".gguf") && extension !== "gguf")
    throw new ArgumentError(
      "quantize",
      "unknownFile",
      `expected a .safetensors file for ${format} weights, got ${out}`,
    );
  return out;
}
