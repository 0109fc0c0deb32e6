/** Answers of completions: whole, or in parts as server-sent events. */
import { apiErrorOf } from "./api_error.ts";
import { type Part, partsOf } from "./choice.ts";
import type { Usage, Work } from "./work.ts";

/** How an endpoint writes what came. */
export interface Format {
  /** Before the first part; undefined for nothing. */
  readonly head?: (choice: number) => object | undefined;
  readonly part: (part: Part) => object | undefined;
  readonly usage: (usage: Usage) => object;
  readonly whole: (parts: readonly (readonly Part[])[], usage: Usage) => object;
}

/** Ends with the request: `done` is called once. */
export interface Session {
  readonly work: Work;
  readonly format: Format;
  readonly done: (outcome: "finished" | "failed" | "left") => void;
}

export async function wholeAnswer({ work, format, done }: Session): Promise<Response> {
  const parts: Part[][] = work.choices.map(() => []);
  try {
    for await (const part of partsOf(work.choices)) parts[part.choice]!.push(part);
    done("finished");
    return Response.json(format.whole(parts, work.usage));
  } catch (error) {
    done("failed");
    throw error;
  }
}

const encoder = new TextEncoder();
const eventOf = (data: object | string): Uint8Array =>
  encoder.encode(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);

/** An error after the first byte is an event: the status has been sent. */
export function streamedAnswer({ work, format, done }: Session, includeUsage: boolean): Response {
  let left = false;
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (data: object | string | undefined) => {
        if (data !== undefined && !left) controller.enqueue(eventOf(data));
      };
      const end = (outcome: "finished" | "failed") => {
        if (!left) controller.close();
        done(left ? "left" : outcome);
      };
      try {
        for (const index of work.choices.keys()) send(format.head?.(index));
        for await (const part of partsOf(work.choices)) send(format.part(part));
        if (includeUsage) send(format.usage(work.usage));
        send("[DONE]");
        end("finished");
      } catch (error) {
        send(apiErrorOf(error).body);
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
