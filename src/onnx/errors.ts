import { OrchardError } from "../core/errors.ts";

/** A node of an ONNX graph can't be computed. */
export class OnnxError extends OrchardError {
  override readonly name = "OnnxError";
  /** The node's operator, such as `"Conv"`. */
  readonly operator: string;
  /** The node's name in the file, or the name of its first output if it has none. */
  readonly node: string;

  constructor(code: string, operator: string, node: string, message: string, options?: ErrorOptions) {
    super("OnnxModel", code, `node "${node}" (${operator}): ${message}`, options);
    this.operator = operator;
    this.node = node;
  }
}

/** An operator throws this for a problem of its node. The graph then adds the node's name. */
export class NodeProblem extends Error {}
