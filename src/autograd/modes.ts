import { checkBody } from "../core/body.ts";
import { ContextVariable } from "../core/context.ts";

const checkNoGrad = checkBody("noGrad");
const checkEnableGrad = checkBody("enableGrad");

/** @internal Whether operations are recorded. */
export const gradEnabled = new ContextVariable(true);

/**
 * Runs `body` without recording: nothing that is made in it requires a gradient. Holds across the awaits of an
 * asynchronous body.
 *
 * @example
 * const accuracy = noGrad(() => evaluate(model));
 */
export const noGrad = <Result>(body: () => Result): Result => gradEnabled.run(false, checkNoGrad(body));

/** Runs `body` with recording, inside a {@link noGrad} too. */
export const enableGrad = <Result>(body: () => Result): Result => gradEnabled.run(true, checkEnableGrad(body));

/** Whether operations are recorded now. */
export const isGradEnabled = (): boolean => gradEnabled.get();
