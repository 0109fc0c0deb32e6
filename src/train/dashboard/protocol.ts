/**
 * The protocol between the dashboard's server and its pages: first all events so far, then each event as it happens.
 */
import type { RunEvent } from "../events.ts";

/** The path of the WebSocket. */
export const EVENTS_PATH = "/events";
/** Each address has the server's token as this parameter. */
export const TOKEN_PARAMETER = "token";

export type Message = readonly RunEvent[];
