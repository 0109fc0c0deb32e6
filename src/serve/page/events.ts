/** Yields the data of server-sent events. A character or an event may be split between parts of the body. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    held += value ? decoder.decode(value, { stream: true }) : "";
    const events = held.split("\n\n");
    held = events.pop()!;
    for (const event of events) if (event.startsWith("data: ")) yield event.slice("data: ".length);
    if (done) return;
  }
}
