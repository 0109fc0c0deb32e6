/** Errors of elementwise functions that are composed of other operations. */
import { AutogradError } from "../../autograd/node.ts";

/** The error for a gradient of an operand by which no derivative is known in closed form. */
export const withoutDerivative = (operation: string, name: string): AutogradError =>
  new AutogradError(operation, "noGradient", `there is no derivative with respect to ${name}; detach() it`);
