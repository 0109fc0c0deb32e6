import type { CapturedCall } from "../../backend/capture.ts";
import type { Recorder } from "./recorder.ts";

/**
 * Adds the nodes of a call, and returns the name of its first result; a list for several results. A result without a
 * name is rejected when it is used.
 */
export type Writer = (recorder: Recorder, call: CapturedCall) => string | readonly (string | undefined)[];
/** Writers by the names of primitives. */
export type Writers = Readonly<Record<string, Writer>>;
