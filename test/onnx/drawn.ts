/**
 * Functions and layers of the library with small drawn operands, as modules for export to ONNX. The sweep of `bench/`
 * draws the cases, so every function that it measures is also exported here.
 */
import { baseShape, type Case } from "../../bench/support/sweep/case.ts";
import { families } from "../../bench/support/sweep/cases.ts";
import { Draw } from "../../bench/support/sweep/draw.ts";
import { caseOf, type Family } from "../../bench/support/sweep/family.ts";
import { drawBase, view } from "../../bench/support/sweep/operands.ts";
import { argumentsOf, exported, tensorsOf } from "../../bench/support/sweep/ours.ts";
import { manualSeed, type nn, type Tensor } from "../../src/index.ts";
import { type Layer, of } from "./written.ts";

/** Draws of the same kinds of cases, all of them small. */
class SmallDraw extends Draw {
  override size(low: number, high: number): number {
    return super.size(low, Math.max(low, Math.min(high, 48)));
  }
}

export interface Drawn {
  readonly name: string;
  readonly call: Case["ours"];
  readonly module: Layer;
  readonly inputs: Readonly<Record<string, Tensor>>;
}

const WRITTEN: ReadonlySet<string> = new Set(["operation", "layer"]);

/** Names of the functions and layers, each with the function that draws a call by a seed. */
export const drawings: readonly { readonly name: string; readonly draw: (seed: number) => Drawn | undefined }[] =
  Object.entries(families).flatMap(([family, [members]]) =>
    Object.entries(members as Family).map(([name, drawing], at) => ({
      name: `${family}: ${name}`,
      draw: (seed: number) => {
        const drawn = caseOf(family, name, drawing(new SmallDraw(seed, at)));
        return WRITTEN.has(drawn.kind) ? drawnModule(drawn, seed) : undefined;
      },
    })),
  );

function drawnModule(drawn: Case, seed: number): Drawn {
  manualSeed(seed);
  const { kind, ours } = drawn;
  const operands = drawn.operands.map((operand) => view(drawBase(operand, baseShape(operand)), operand).clone());
  const call = exported(ours.name) as (...values: unknown[]) => unknown;
  const inputs = Object.fromEntries(operands.map((operand, at) => [`x${at}`, operand]));
  if (kind === "operation") {
    const module = of((...given) => tensorsOf(call(...argumentsOf(ours, given))));
    return { name: ours.name, call: ours, module, inputs };
  }
  const layer = new (call as unknown as new (...values: unknown[]) => nn.Module & { forward: typeof call })(
    ...argumentsOf(ours, operands),
  );
  return { name: ours.name, call: ours, module: of((...given) => tensorsOf(layer.forward(...given)), layer), inputs };
}

/** Layers that the sweep does not draw. Most are in written.ts; the last ones compute nothing, or are rejected. */
export const LAYERS_ELSEWHERE: readonly string[] = [
  "CosineEmbeddingLoss",
  "GPT",
  "GaussianNLLLoss",
  "HingeEmbeddingLoss",
  "MLP",
  "MarginRankingLoss",
  "MaxUnpool1d",
  "MaxUnpool2d",
  "MaxUnpool3d",
  "MultiHeadAttention",
  "MultiLabelMarginLoss",
  "MultiLabelSoftMarginLoss",
  "Sequential",
  "SwiGLU",
  "Transformer",
  "TransformerBlock",
  "TransformerDecoder",
  "TransformerDecoderLayer",
  "TransformerEncoder",
  "TripletMarginLoss",
  "TripletMarginWithDistanceLoss",
  "ModuleDict",
  "ModuleList",
  "ParameterDict",
  "ParameterList",
  "CTCLoss",
  "FractionalMaxPool2d",
  "FractionalMaxPool3d",
  "Int4Linear",
  "LanguageModel",
  "Llama",
  "QuantizedEmbedding",
  "QuantizedLinear",
];
