/**
 * Clients that end their sending side, disconnect, or read slowly, in drawn orders: each answer arrives whole, and the
 * server closes every connection.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import * as fc from "fast-check";
import { inParallel } from "../../scripts/parallel.ts";
import { lastElement } from "../../src/core/collections.ts";
import { type ApiRequest, Front } from "../../src/serve/front.ts";
import { repeats } from "../support/repeats.ts";
import { seed } from "../support/some.ts";
import { waitFor, within } from "../support/wait.ts";

/** Moments of a connection, in their order. */
const moments = ["connected", "requested", "begun", "answered"] as const;
type Moment = (typeof moments)[number];

interface Plan {
  /** Whether the answer is a stream of events. */
  readonly stream: boolean;
  /** Characters of the answer's events. */
  readonly parts: readonly number[];
  /** Where the request's bytes are cut into pieces, in hundredths. */
  readonly cuts: readonly number[];
  /** When the client ends its sending side. */
  readonly ends: Moment;
  /** When the client disconnects. */
  readonly leaves: Moment | "never";
  /** Whether the server waits until the client has ended its sending side, unless it does so after its answer. */
  readonly waits: boolean;
  /** Milliseconds in which the client reads nothing, once the answer has begun. */
  readonly pause: number;
}

const drawn: fc.Arbitrary<Plan> = fc.record({
  stream: fc.boolean(),
  parts: fc.array(fc.constantFrom(1, 1, 100, 1000, 10_000, 100_000, 4_000_000), { minLength: 1, maxLength: 3 }),
  cuts: fc.array(fc.integer({ min: 1, max: 99 }), { maxLength: 2 }),
  ends: fc.constantFrom(...moments),
  leaves: fc.oneof({ weight: 3, arbitrary: fc.constant("never" as const) }, fc.constantFrom(...moments)),
  waits: fc.boolean(),
  pause: fc.constantFrom(0, 0, 300),
});
const plans = fc.sample(drawn, { numRuns: repeats({ usual: 100, all: 3000 }), seed });

/** Resolves when the client of a plan has ended its sending side. */
const ended = plans.map(() => Promise.withResolvers<void>());
/** Resolves when the server knows that the client of a plan disconnected. */
const left = plans.map(() => Promise.withResolvers<void>());

const eventOf = (characters: number) => `data: ${"x".repeat(characters)}\n\n`;
const textOf = ({ parts }: Plan) => parts.map(eventOf).join("");

let [front, port]: [Front, number] = [] as never;
beforeAll(async () => {
  const door = { method: "POST", needsKey: false, bodyBytes: 1000 } as const;
  const listening = {
    host: "127.0.0.1",
    port: 0,
    key: undefined,
    origins: [],
    isLoopback: true,
    connections: 1000,
    bodySeconds: 600,
    doors: new Map([["/answer", door]]),
  };
  const [opened, url] = await Front.open(listening, { answer, counted: () => undefined });
  [front, port] = [opened, Number(new URL(url).port)];
});
afterAll(async () => {
  await front.close(0);
  await front.stop();
});

/** The request's body is the index of its plan. */
async function answer({ body, signal }: ApiRequest): Promise<Response> {
  const index = Number(new TextDecoder().decode(body));
  const plan = plans[index];
  if (signal.aborted) left[index].resolve();
  signal.addEventListener("abort", () => left[index].resolve());
  if (plan.stream) {
    const parts = events(index);
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const { done, value } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(new TextEncoder().encode(value));
    };
    return new Response(new ReadableStream({ pull }), { headers: { "Content-Type": "text/event-stream" } });
  }
  await before(index);
  return new Response(textOf(plan));
}

/** Waits for what the client does before the answer begins. */
async function before(index: number): Promise<void> {
  const { ends, leaves, waits } = plans[index];
  if (leaves === "requested") await left[index].promise;
  else if (waits && (ends === "connected" || ends === "requested")) await ended[index].promise;
}

async function* events(index: number): AsyncGenerator<string> {
  const { ends, leaves, waits, parts } = plans[index];
  await before(index);
  yield eventOf(parts[0]);
  if (leaves === "begun") await left[index].promise;
  else if (waits && ends === "begun") await ended[index].promise;
  for (const part of parts.slice(1)) yield eventOf(part);
}

/** Whether the client disconnects between its request and the end of its answer. */
const isNoticed = ({ leaves, stream }: Plan) => leaves === "requested" || (leaves === "begun" && stream);

/** Recognizes the moments of an answer in its bytes. */
class Received {
  private readonly pieces: Buffer[] = [];
  private length = 0;
  /** The length of the whole answer; undefined for chunks, whose end is marked. */
  private expected: number | undefined;
  isBegun = false;
  isComplete = false;

  add(piece: Buffer): void {
    this.pieces.push(piece);
    this.length += piece.length;
    if (!this.isBegun) {
      const [head] = /^[\s\S]*HTTP\/1\.1 200 [\s\S]*?\r\n\r\n/.exec(this.text) ?? [];
      this.isBegun = head !== undefined;
      const length = /^content-length: (\d+)/im.exec(head ?? "")?.[1];
      this.expected = length === undefined ? undefined : head!.length + Number(length);
    }
    const end = Buffer.concat(this.pieces.slice(-5)).subarray(-5).toString("latin1");
    this.isComplete = this.isBegun && (this.expected ? this.length >= this.expected : end === "0\r\n\r\n");
  }

  get text(): string {
    return Buffer.concat(this.pieces).toString("latin1");
  }

  /** The body of a complete answer, without comments of a stream. */
  get body(): string {
    const text = this.text.replace(/^(?:HTTP\/1\.1 100 Continue\r\n\r\n)+/, "");
    const rest = text.slice(text.indexOf("\r\n\r\n") + 4);
    if (this.expected !== undefined) return rest;
    const chunks: string[] = [];
    for (let at = 0; ; ) {
      const line = rest.indexOf("\r\n", at);
      const size = Number.parseInt(rest.slice(at, line), 16);
      if (line < 0 || !(size > 0)) return chunks.join("").replaceAll(":\n\n", "");
      chunks.push(rest.slice(line + 2, line + 2 + size));
      at = line + 2 + size + 2;
    }
  }
}

/** Sends the request of a plan, and reads until the connection is closed. */
async function exchange(index: number): Promise<Received> {
  const { cuts, ends, leaves, pause } = plans[index];
  const socket = new Socket({ allowHalfOpen: true });
  const received = new Received();
  const reached = new Set<Moment>();
  const reach = (moment: Moment) => {
    if (reached.has(moment)) return;
    reached.add(moment);
    if (moment === leaves) socket.destroy();
    else if (moment === ends) socket.end(() => ended[index].resolve());
    if (moment === "begun" && pause > 0) {
      socket.pause();
      setTimeout(() => socket.resume(), pause);
    }
  };
  socket.on("data", (piece: Buffer) => {
    received.add(piece);
    if (received.isBegun) reach("begun");
    if (received.isComplete) reach("answered");
  });
  socket.on("error", () => undefined);
  const closed = new Promise((resolve) => socket.on("close", resolve));
  await new Promise<void>((resolve) => socket.connect(port, "127.0.0.1", resolve));
  if (leaves === "connected") socket.destroy();
  const body = String(index);
  const head = `POST /answer HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`;
  const pieces = piecesOf(head + body, cuts);
  for (const piece of pieces.slice(0, -1)) {
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (ends === "connected" && leaves !== "connected") socket.end(lastElement(pieces), () => ended[index].resolve());
  else socket.write(lastElement(pieces));
  reach("requested");
  await closed;
  return received;
}

function piecesOf(text: string, cuts: readonly number[]): string[] {
  const places = [0, ...cuts.map((cut) => Math.floor((text.length * cut) / 100)), text.length].sort((a, b) => a - b);
  return places.slice(1).map((place, at) => text.slice(places[at], place));
}

/** States of the server's connections that are not closed; empty if the system has no list of them. */
function openConnections(): readonly string[] {
  const list = "/proc/self/net/tcp";
  if (!existsSync(list)) return [];
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const closed = ["06", "07", "0A"]; // TIME_WAIT, CLOSE and LISTEN
  return readFileSync(list, "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, address, , state]) => address?.endsWith(local) && !closed.includes(state))
    .map(([, , , state]) => state);
}

test(`${plans.length} clients that seed ${seed} draws get whole answers, and no connection stays open`, async () => {
  const check = async (index: number) => {
    const plan = plans[index];
    const described = `client ${index}, ${JSON.stringify(plan)},`;
    const received = await within(`${described} to see its connection closed`, exchange(index));
    if (isNoticed(plan)) await within(`the server to notice that ${described} left`, left[index].promise);
    if (plan.leaves !== "never") return;
    const isWhole = received.isComplete && received.body === textOf(plan);
    expect([index, plan, isWhole]).toEqual([index, plan, true]);
  };
  await inParallel(plans.keys(), check, 30);
  await waitFor("the server to close all connections", () => openConnections().length === 0, {
    state: openConnections,
  });
});
