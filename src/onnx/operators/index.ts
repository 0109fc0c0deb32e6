/** The table of operators. */
import type { Operator, Operators } from "../call.ts";
import { attentions } from "./attention.ts";
import { control } from "./control.ts";
import { creation } from "./creation.ts";
import { deformable } from "./deform.ts";
import { dropout, elementwise } from "./elementwise.ts";
import { flexAttentions } from "./flex_attention.ts";
import { fourier } from "./fourier.ts";
import { indexing } from "./indexing.ts";
import { linearAttentions } from "./linear_attention.ts";
import { losses, randomNumbers, signals } from "./losses.ts";
import { microsoft, simplifiedLayerNormalization } from "./microsoft.ts";
import { ml } from "./ml/index.ts";
import { normalization } from "./normalization.ts";
import { padding } from "./padding.ts";
import { quantization } from "./quantized.ts";
import { recurrentLayers } from "./recurrent.ts";
import { reductions } from "./reductions.ts";
import { resizing } from "./resize.ts";
import { shapes } from "./shapes.ts";
import { texts } from "./text.ts";
import { optimizers } from "./training.ts";
import { vision } from "./vision.ts";
import { windows } from "./windows.ts";

/** The operators by domain. The standard's domain is the empty string. */
const domains: Readonly<Record<string, Operators>> = {
  "": {
    ...attentions,
    ...control,
    ...creation,
    ...deformable,
    ...elementwise,
    ...fourier,
    ...indexing,
    ...linearAttentions,
    ...losses,
    ...normalization,
    ...padding,
    ...quantization,
    ...randomNumbers,
    ...recurrentLayers,
    ...reductions,
    ...resizing,
    ...shapes,
    ...signals,
    ...vision,
    ...texts,
    ...windows,
    Dropout: dropout,
    SimplifiedLayerNormalization: simplifiedLayerNormalization,
  },
  "ai.onnx.ml": ml,
  "ai.onnx.preview": flexAttentions,
  "ai.onnx.preview.training": optimizers,
  "com.microsoft": microsoft,
};

/** Returns an operator, or undefined if it is not supported. */
export const operatorNamed = (domain: string, name: string): Operator | undefined => {
  const operators = Object.hasOwn(domains, domain) ? domains[domain] : {};
  return Object.hasOwn(operators, name) ? operators[name] : undefined;
};

/** The names of all operators of a domain, sorted. */
export const operatorNames = (domain = ""): string[] => Object.keys(domains[domain] ?? {}).sort();
