/** Serves one model over HTTP with an OpenAI-compatible API. */
import { ArgumentError } from "../core/errors.ts";
import { Batcher, type BatcherOptions } from "../nn/generation/batcher.ts";
import { Wav2Vec2 } from "../nn/models/wav2vec2/wav2vec2.ts";
import { WINDOW_SAMPLES } from "../nn/speech/ctc.ts";
import { Access } from "./access.ts";
import { type Session, streamedAnswer, wholeAnswer } from "./answer.ts";
import { ApiError, apiErrorOf, busy } from "./api_error.ts";
import { readBody, readForm } from "./body.ts";
import { chatFormat, chatOrder } from "./chat.ts";
import { completionFormat, completionOrder } from "./completions.ts";
import { embeddings } from "./embeddings.ts";
import { encoderEmbeddings, rerankings, type ServedEncoder } from "./encoders.ts";
import { BODY_WITH_IMAGES, defaultLimits, type Limits } from "./limits.ts";
import { Metrics } from "./metrics.ts";
import { page } from "./page.ts";
import { chatOf, ofResponses, responseRequest } from "./response_request.ts";
import { responseFormat } from "./responses.ts";
import { chatRequest, completionRequest, embeddingRequest, rerankRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";
import { type ServedSpeech, speechAnswer, speechForm } from "./speech.ts";
import { type Engine, type Order, Work } from "./work.ts";

export interface ServerOptions {
  /** The address to listen on. Default 127.0.0.1; any other requires a key. */
  readonly host?: string | undefined;
  /** Default 8080; 0 for any free port. */
  readonly port?: number | undefined;
  readonly key?: string | undefined;
  /** The origins of web pages that may send requests. Default: none. */
  readonly origins?: readonly string[] | undefined;
  readonly batcher?: BatcherOptions | undefined;
  readonly limits?: Partial<Limits> | undefined;
}

type Handler = (request: Request) => Promise<Response> | Response;
interface Route {
  readonly method: "GET" | "POST";
  readonly needsKey: boolean;
  readonly handle: Handler;
}

const FLUSH_MILLISECONDS = 500;

/** Returns the path of a request. @throws {ApiError} 400 for an invalid Host or path. */
function pathOf({ url }: Request): string {
  if (!URL.canParse(url)) throw new ApiError(400, "expected a valid Host and path", "invalid_request");
  try {
    return decodeURIComponent(new URL(url).pathname);
  } catch {
    throw new ApiError(400, "expected a valid path", "invalid_request");
  }
}

/** A model of any kind. */
export type Served = ServedModel | ServedEncoder | ServedSpeech;

export class ModelServer {
  private readonly served: Served;
  private readonly limits: Limits;
  /** Generates texts; undefined for other models. */
  private readonly engine: Engine | undefined;
  private readonly server: Bun.Server<undefined>;
  private readonly access: Access;
  private readonly metrics: Metrics;
  private readonly routes: ReadonlyMap<string, Route>;
  private readonly created = Math.floor(Date.now() / 1000);
  private inFlight = 0;
  /** The end of the last request with a recording: they run one after the other. */
  private speaking: Promise<unknown> = Promise.resolve();
  private closing = false;
  private idle: (() => void) | undefined;

  /** @throws {ArgumentError} for an address that requires a key or is not available. */
  constructor(served: Served, options: ServerOptions = {}) {
    const { host = "127.0.0.1", port = 8080, key, origins = [] } = options;
    const isLoopback = ["127.0.0.1", "localhost", "::1"].includes(host);
    if (!isLoopback && !key)
      throw new ArgumentError(
        "serve",
        "noKey",
        `expected a key for the address ${host}, which other machines can reach`,
      );
    this.served = served;
    const reads = "model" in served && served.processor !== undefined;
    this.limits = { ...defaultLimits, ...(reads && { bodyBytes: BODY_WITH_IMAGES }), ...options.limits };
    this.access = new Access({ key, origins, isLoopback });
    this.engine =
      "model" in served
        ? { served, limits: this.limits, batcher: new Batcher(served.model, options.batcher) }
        : undefined;
    this.metrics = new Metrics(this.engine?.batcher, () => this.inFlight);
    this.routes = this.makeRoutes();
    this.server = this.listen(host, port);
  }

  /** The URL, such as `http://127.0.0.1:8080`. */
  get url(): string {
    return this.server.url.origin;
  }

  private listen(hostname: string, port: number): Bun.Server<undefined> {
    try {
      const maxRequestBodySize = Number.MAX_SAFE_INTEGER; // so that oversized bodies get an error in the API's format
      const fetch = (request: Request, server: Bun.Server<undefined>) => {
        server.timeout(request, 0); // a request may wait in the queue; it has a separate time limit
        return this.answer(request);
      };
      return Bun.serve({ hostname, port, development: false, reusePort: false, maxRequestBodySize, fetch });
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new ArgumentError("serve", "portTaken", `the server can't listen on ${hostname}:${port}: ${reason}`, {
        cause,
      });
    }
  }

  private makeRoutes(): ReadonlyMap<string, Route> {
    const open = { method: "GET", needsKey: false } as const;
    const get = { method: "GET", needsKey: true } as const;
    const post = { method: "POST", needsKey: true } as const;
    return new Map<string, Route>([
      ["/", { ...open, handle: page }],
      ["/health", { ...open, handle: () => this.health() }],
      ["/metrics", { ...get, handle: () => this.metrics.answer() }],
      ["/v1/models", { ...get, handle: () => Response.json({ object: "list", data: [this.card] }) }],
      [`/v1/models/${this.served.name}`, { ...get, handle: () => Response.json(this.card) }],
      ["/v1/chat/completions", { ...post, handle: (request) => this.chat(request) }],
      ["/v1/responses", { ...post, handle: (request) => this.respond(request) }],
      ["/v1/completions", { ...post, handle: (request) => this.complete(request) }],
      ["/v1/embeddings", { ...post, handle: (request) => this.embed(request) }],
      ["/v1/audio/transcriptions", { ...post, handle: (request) => this.transcribe(request, "transcribe") }],
      ["/v1/audio/translations", { ...post, handle: (request) => this.transcribe(request, "translate") }],
      ["/v1/rerank", { ...post, handle: (request) => this.rerank(request, true) }],
      ["/v2/rerank", { ...post, handle: (request) => this.rerank(request, false) }],
    ]);
  }

  private health(): Response {
    return Response.json({ status: this.closing ? "closing" : "ok" }, { status: this.closing ? 503 : 200 });
  }

  private get card(): object {
    const { name } = this.served;
    const contextLength = contextOf(this.served);
    return {
      id: name,
      object: "model",
      created: this.created,
      owned_by: "orchard",
      context_length: contextLength,
    };
  }

  /** Answers every request, also after errors. */
  private async answer(request: Request): Promise<Response> {
    let path = "unknown";
    this.inFlight++;
    try {
      const decoded = pathOf(request);
      if (this.routes.has(decoded)) path = decoded;
      const response = await this.route(request, decoded);
      this.metrics.answered(path, response.status);
      for (const [name, value] of Object.entries(this.access.corsHeaders(request))) response.headers.set(name, value);
      return response;
    } catch (error) {
      const { status, body, headers } = this.errorOf(error);
      this.metrics.answered(path, status);
      return Response.json(body, { status, headers: { ...headers, ...this.access.corsHeaders(request) } });
    } finally {
      this.leave();
    }
  }

  private leave(): void {
    this.inFlight--;
    if (this.inFlight === 0) this.idle?.();
  }

  private errorOf(error: unknown): ApiError {
    const failure = apiErrorOf(error);
    if (failure.status === 500) console.error("serve:", error);
    return failure;
  }

  private route(request: Request, path: string): Promise<Response> | Response {
    this.access.checkOrigin(request);
    if (request.method === "OPTIONS") return new Response(null, { status: 204 });
    const route = this.routes.get(path);
    if (!route) throw new ApiError(404, `expected a path of the API, got ${JSON.stringify(path.slice(0, 200))}`);
    if (request.method !== route.method)
      throw new ApiError(405, `expected ${route.method}, got ${request.method}`, null, null, { Allow: route.method });
    if (route.needsKey) this.access.checkKey(request);
    if (route.method === "POST" && this.closing)
      throw new ApiError(503, "the server is shutting down", "shutting_down");
    if (route.method === "POST" && this.inFlight > this.limits.connections)
      throw busy(`expected at most ${this.limits.connections} requests at a time; try again later`);
    return route.handle(request);
  }

  /** @throws {ApiError} 404 for models other than language models */
  private generating(): Engine {
    if (this.engine) return this.engine;
    const advice =
      "speech" in this.served
        ? "recognizes speech; use /v1/audio/transcriptions"
        : "is an encoder, which can't generate text; use /v1/embeddings or /v1/rerank";
    throw new ApiError(404, `the model ${this.served.name} ${advice}`);
  }

  private async transcribe(request: Request, task: "transcribe" | "translate"): Promise<Response> {
    const { served, limits } = this;
    const form = await readForm(request, speechForm, limits);
    this.checkModel(form.model);
    if (!("speech" in served)) throw new ApiError(404, `the model ${served.name} does not recognize speech`);
    const late = AbortSignal.timeout(limits.seconds * 1000);
    const signal = AbortSignal.any([request.signal, late]);
    const answer = this.speaking.then(() => speechAnswer(served, form, task, signal));
    this.speaking = answer.catch(() => undefined);
    try {
      return await answer;
    } catch (error) {
      if (late.aborted) throw new ApiError(503, `expected an answer within ${limits.seconds} seconds`, "timeout");
      if (request.signal.aborted) throw new ApiError(400, "the client disconnected");
      throw error;
    }
  }

  private async chat(request: Request): Promise<Response> {
    const { served, limits } = this.generating();
    const body = await readBody(request, chatRequest, limits);
    this.checkModel(body.model);
    const order = await chatOrder(served, body, limits, request.signal);
    return this.run(request, body, order, () => chatFormat(served, body));
  }

  private async respond(request: Request): Promise<Response> {
    const { served, limits } = this.generating();
    const body = await readBody(request, responseRequest, limits);
    this.checkModel(body.model);
    const chat = chatOf(body);
    try {
      const order = await chatOrder(served, chat, limits, request.signal);
      return await this.run(request, chat, order, () => responseFormat(served, body, chat));
    } catch (error) {
      throw ofResponses(error);
    }
  }

  private async complete(request: Request): Promise<Response> {
    const engine = this.generating();
    const { served, limits } = engine;
    const body = await readBody(request, completionRequest, limits);
    this.checkModel(body.model);
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(limits.seconds * 1000)]);
    const order = await completionOrder(engine, body, signal);
    return this.run(request, body, order, () => completionFormat(served, body, order));
  }

  private async embed(request: Request): Promise<Response> {
    const { served, limits } = this;
    const body = await readBody(request, embeddingRequest, limits);
    this.checkModel(body.model);
    if ("model" in served) return embeddings(served, limits, body, request.signal);
    if ("encoder" in served) return encoderEmbeddings(served, limits, body);
    throw new ApiError(404, `the model ${served.name} recognizes speech, and has no embeddings`);
  }

  /** @param returnsDocuments the default of `return_documents`: true for Jina's clients, false for Cohere's */
  private async rerank(request: Request, returnsDocuments: boolean): Promise<Response> {
    const { served, limits } = this;
    const body = await readBody(request, rerankRequest, limits);
    this.checkModel(body.model);
    if (!("encoder" in served))
      throw new ApiError(404, `the model ${served.name} is not a cross-encoder, so it can't rank documents`);
    return rerankings(served, limits, { ...body, return_documents: body.return_documents ?? returnsDocuments });
  }

  private checkModel(name: string): void {
    const served = this.served.name;
    if (name !== served)
      throw new ApiError(
        404,
        `expected the model ${served}, got ${JSON.stringify(name.slice(0, 200))}`,
        "model_not_found",
        "model",
      );
  }

  private run(request: Request, body: Order["shared"], order: Order, format: () => Session["format"]) {
    if (body.stream_options !== undefined && !body.stream)
      throw new ApiError(400, "stream_options requires stream: true", "invalid_value", "stream_options");
    const start = performance.now();
    const controller = new AbortController();
    const work = new Work(this.generating(), order, controller.signal);
    const seconds = this.limits.seconds;
    const late = () => controller.abort(new ApiError(503, `expected an answer within ${seconds} seconds`, "timeout"));
    const timer = setTimeout(late, seconds * 1000);
    const left = () => work.cancel();
    request.signal.addEventListener("abort", left);
    const outlivesHandler = body.stream === true;
    if (outlivesHandler) this.inFlight++;
    const done: Session["done"] = (outcome) => {
      clearTimeout(timer);
      request.signal.removeEventListener("abort", left);
      this.metrics.ended(request.signal.aborted ? "left" : outcome, work.usage, (performance.now() - start) / 1000);
      if (outlivesHandler) this.leave();
    };
    const session = { work, format: format(), done };
    return outlivesHandler
      ? streamedAnswer(session, body.stream_options?.include_usage === true)
      : wholeAnswer(session);
  }

  /** Rejects new requests and waits up to `seconds` for running ones to finish, then aborts the rest. */
  async close(seconds = 30): Promise<void> {
    this.closing = true;
    if (this.inFlight > 0)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, seconds * 1000);
        this.idle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    this.engine?.batcher.dispose();
    // The last bytes may still be in transit.
    const deadline = performance.now() + FLUSH_MILLISECONDS;
    while (this.server.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(10);
    await Promise.race([this.server.stop(), Bun.sleep(FLUSH_MILLISECONDS / 5)]);
    await this.server.stop(true);
  }
}

function contextOf(served: Served): number {
  if ("model" in served) return served.model.contextLength;
  if ("encoder" in served) return served.encoder.contextLength;
  const { speech } = served;
  return speech instanceof Wav2Vec2 ? speech.framesOf(WINDOW_SAMPLES) : speech.description.contextLength;
}
