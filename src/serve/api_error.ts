/** Errors in OpenAI's format. */
import { OrchardError } from "../core/errors.ts";

/** An error in a request, or a reason why it can't be answered now. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null = null,
    readonly param: string | null = null,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }

  get body(): object {
    const { message, code, param } = this;
    return { error: { message, type: typeOf(this.status), param, code } };
  }
}

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
};
const typeOf = (status: number): string => TYPES[status] ?? (status < 500 ? "invalid_request_error" : "server_error");

/** Converts an error for the client. Mistakes of the client give status 400; internal errors hide their details. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof OrchardError) return ofOrchard(error);
  return new ApiError(500, "the server failed to answer; its log has the reason", "internal_error");
}

function ofOrchard({ code, message, name }: OrchardError): ApiError {
  const text = message.replace(/^\[[^\]]*\] /, "");
  if (code === "queueFull") return busy(text);
  if (code === "promptTooLong") return new ApiError(400, text, "context_length_exceeded", "messages");
  if (name === "DisposedError") return new ApiError(503, "the server is shutting down", "shutting_down");
  if (name === "ArgumentError" && code !== "notFinite") return new ApiError(400, text, code);
  return new ApiError(500, text, "internal_error");
}

/** @internal Returns an error that asks the client to retry later. */
export const busy = (message: string): ApiError =>
  new ApiError(429, message, "overloaded", null, { "Retry-After": "1" });
