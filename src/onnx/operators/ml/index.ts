/** Operators of ai.onnx.ml, to which scikit-learn models are exported. */
import type { Operators } from "../../call.ts";
import { labelOperators } from "./labels.ts";
import { linearOperators } from "./linear.ts";
import { treeOperators } from "./trees.ts";
import { vectorOperators } from "./vectors.ts";

export const ml: Operators = { ...labelOperators, ...linearOperators, ...treeOperators, ...vectorOperators };
