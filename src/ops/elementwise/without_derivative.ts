/** Errors of elementwise functions that are composed of other operations. */
import { AutogradError } from "../../autograd/node.ts";

/** Returns the error for a gradient with respect to an operand for which no closed form is known. */
export const withoutDerivative = (operation: string, name: string): AutogradError =>
  new AutogradError(operation, "noGradient", `there is no derivative with respect to ${name}; detach() it`);
