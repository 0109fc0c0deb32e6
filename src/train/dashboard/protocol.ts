/** What the server of the dashboard tells its pages: all events so far as the first message, then each as it happens. */
import type { RunEvent } from "../events.ts";

/** Where pages listen. */
export const EVENTS_PATH = "/events";

export type Message = readonly RunEvent[];
