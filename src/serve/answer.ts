/** Answers of completions: complete, or streamed as server-sent events. */
import { type ApiError, apiErrorOf } from "./api_error.ts";
import { type Part, partsOf } from "./choice.ts";
import type { Usage, Work } from "./work.ts";

/** The events to send: none, one or several. */
export type Events = object | readonly object[] | undefined;

/** How an endpoint formats its answers. */
export interface Format {
  /** Events before the first part. */
  readonly head?: (choice: number) => Events;
  readonly part: (part: Part) => Events;
  readonly usage: (usage: Usage) => Events;
  readonly whole: (parts: readonly (readonly Part[])[], usage: Usage) => object;
  /** Whether events are named by their `type`. Then `end` is the last one, and no `[DONE]` follows. */
  readonly isTyped?: boolean;
  readonly end?: (usage: Usage) => Events;
  /** Formats an error, instead of the API's usual format. */
  readonly failed?: (error: ApiError) => Events;
}

/** The state of a request. `done` is called once, when the request ends. */
export interface Session {
  readonly work: Work;
  readonly format: Format;
  readonly done: (outcome: "finished" | "failed" | "left") => void;
}

export async function wholeAnswer({ work, format, done }: Session): Promise<Response> {
  const parts: Part[][] = work.choices.map(() => []);
  try {
    for await (const part of partsOf(work.choices)) parts[part.choice].push(part);
    done("finished");
    return Response.json(format.whole(parts, work.usage));
  } catch (error) {
    done("failed");
    throw error;
  }
}

const encoder = new TextEncoder();
const eventOf = (data: object | string, isTyped: boolean): Uint8Array => {
  const name = isTyped ? `event: ${(data as { type: string }).type}\n` : "";
  return encoder.encode(`${name}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
};

/** Streams an answer. An error after the first byte is sent as an event, since the status is already sent. */
export function streamedAnswer({ work, format, done }: Session, includeUsage: boolean): Response {
  let left = false;
  const { isTyped = false } = format;
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (events: Events | string) => {
        for (const event of [events ?? []].flat()) if (!left) controller.enqueue(eventOf(event, isTyped));
      };
      const end = (outcome: "finished" | "failed") => {
        if (!left) controller.close();
        done(left ? "left" : outcome);
      };
      try {
        for (const index of work.choices.keys()) send(format.head?.(index));
        for await (const part of partsOf(work.choices)) send(format.part(part));
        if (includeUsage) send(format.usage(work.usage));
        send(isTyped ? format.end?.(work.usage) : "[DONE]");
        end("finished");
      } catch (error) {
        const failure = apiErrorOf(error);
        send(format.failed ? format.failed(failure) : failure.body);
        end("failed");
      }
    },
    cancel() {
      left = true;
      work.cancel();
    },
  });
  return new Response(body, {
    headers: { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store" },
  });
}
