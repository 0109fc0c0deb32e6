/** Serves one model over HTTP with an OpenAI-compatible API. */
import { ArgumentError } from "../core/errors.ts";
import { Batcher } from "../nn/generation/batcher.ts";
import { Wav2Vec2 } from "../nn/models/wav2vec2/wav2vec2.ts";
import { WINDOW_SAMPLES } from "../nn/speech/ctc.ts";
import { type Session, streamedAnswer, wholeAnswer } from "./answer.ts";
import { ApiError, apiErrorOf } from "./api_error.ts";
import { readBody, readForm } from "./body.ts";
import { chatFormat, chatOrder } from "./chat.ts";
import { completionFormat, completionOrder } from "./completions.ts";
import { embeddings } from "./embeddings.ts";
import { encoderEmbeddings, rerankings, type ServedEncoder } from "./encoders.ts";
import { type ApiRequest, Front } from "./front.ts";
import type { Answered, Door } from "./front_messages.ts";
import { BODY_WITH_IMAGES, defaultLimits, type Limits } from "./limits.ts";
import { Metrics } from "./metrics.ts";
import { page } from "./page.ts";
import { chatOf, ofResponses, responseRequest } from "./response_request.ts";
import { responseFormat } from "./responses.ts";
import { chatRequest, completionRequest, embeddingRequest, rerankRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";
import type { ServerOptions } from "./server_options.ts";
import { type ServedSpeech, speechAnswer, speechForm } from "./speech.ts";
import { type Engine, type Order, Work } from "./work.ts";

/** A path of the API. */
interface Route extends Door {
  /** Answers an admitted request; undefined if the front answers. */
  readonly handle?: (request: ApiRequest) => Promise<Response> | Response;
}

/** A model of any kind. */
export type Served = ServedModel | ServedEncoder | ServedSpeech;

export class ModelServer {
  private readonly served: Served;
  private readonly limits: Limits;
  /** Generates texts; undefined for other models. */
  private readonly engine: Engine | undefined;
  private readonly metrics: Metrics;
  private readonly routes: ReadonlyMap<string, Route>;
  private readonly created = Math.floor(Date.now() / 1000);
  /** The front, and the server's URL. */
  private front: readonly [Front, string] | undefined;
  private open = 0;
  /** The end of the last request with a recording: they run one after the other. */
  private speaking: Promise<unknown> = Promise.resolve();

  private constructor(served: Served, options: ServerOptions) {
    this.served = served;
    const reads = "model" in served && served.processor !== undefined;
    this.limits = { ...defaultLimits, ...(reads && { bodyBytes: BODY_WITH_IMAGES }), ...options.limits };
    this.engine =
      "model" in served
        ? { served, limits: this.limits, batcher: new Batcher(served.model, options.batcher) }
        : undefined;
    this.metrics = new Metrics(this.engine?.batcher, () => this.open);
    this.routes = this.makeRoutes();
  }

  /** Starts a server. @throws {ArgumentError} for an address that requires a key or is not available */
  static async start(served: Served, options: ServerOptions = {}): Promise<ModelServer> {
    const { host = "127.0.0.1", port = 8080, key, origins = [] } = options;
    const isLoopback = ["127.0.0.1", "localhost", "::1"].includes(host);
    if (!isLoopback && !key)
      throw new ArgumentError(
        "serve",
        "noKey",
        `expected a key for the address ${host}, which other machines can reach`,
      );
    const server = new ModelServer(served, options);
    const { connections, bodySeconds } = server.limits;
    const doors = new Map([...server.routes].map(([path, { handle: _, ...door }]) => [path, door]));
    const listening = { host, port, key, origins, isLoopback, connections, bodySeconds, doors };
    server.front = await Front.open(listening, {
      answer: (request) => server.answer(request),
      counted: (open, answered) => server.counted(open, answered),
    });
    return server;
  }

  /** The URL, such as `http://127.0.0.1:8080`. */
  get url(): string {
    return this.front![1];
  }

  private makeRoutes(): ReadonlyMap<string, Route> {
    const open = { method: "GET", needsKey: false } as const;
    const get = { method: "GET", needsKey: true } as const;
    const post = { method: "POST", needsKey: true, bodyBytes: this.limits.bodyBytes } as const;
    const form = { ...post, bodyBytes: this.limits.formBytes };
    return new Map<string, Route>([
      ["/", { ...open, handle: page }],
      ["/health", open],
      ["/metrics", { ...get, handle: () => this.metrics.answer() }],
      ["/v1/models", { ...get, handle: () => Response.json({ object: "list", data: [this.card] }) }],
      [`/v1/models/${this.served.name}`, { ...get, handle: () => Response.json(this.card) }],
      ["/v1/chat/completions", { ...post, handle: (request) => this.chat(request) }],
      ["/v1/responses", { ...post, handle: (request) => this.respond(request) }],
      ["/v1/completions", { ...post, handle: (request) => this.complete(request) }],
      ["/v1/embeddings", { ...post, handle: (request) => this.embed(request) }],
      ["/v1/audio/transcriptions", { ...form, handle: (request) => this.transcribe(request, "transcribe") }],
      ["/v1/audio/translations", { ...form, handle: (request) => this.transcribe(request, "translate") }],
      ["/v1/rerank", { ...post, handle: (request) => this.rerank(request, true) }],
      ["/v2/rerank", { ...post, handle: (request) => this.rerank(request, false) }],
    ]);
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

  /** Answers an admitted request, also after errors. */
  private async answer(request: ApiRequest): Promise<Response> {
    try {
      const response = await this.routes.get(request.path)!.handle!(request);
      this.metrics.answered(request.path, response.status);
      return response;
    } catch (error) {
      const { status, body, headers } = this.errorOf(error);
      this.metrics.answered(request.path, status);
      return Response.json(body, { status, headers });
    }
  }

  /** Counts what the front reports. */
  private counted(open: number, answered: Answered): void {
    this.open = open;
    for (const [path, statuses] of answered)
      for (const [status, count] of statuses) this.metrics.answered(path, status, count);
  }

  private errorOf(error: unknown): ApiError {
    const failure = apiErrorOf(error);
    if (failure.status === 500) console.error("serve:", error);
    return failure;
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

  private async transcribe(request: ApiRequest, task: "transcribe" | "translate"): Promise<Response> {
    const { served, limits } = this;
    const form = await readForm(request, speechForm);
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

  private async chat(request: ApiRequest): Promise<Response> {
    const { served, limits } = this.generating();
    const body = readBody(request, chatRequest);
    this.checkModel(body.model);
    const order = await chatOrder(served, body, limits, request.signal);
    return this.run(request, body, order, () => chatFormat(served, body));
  }

  private async respond(request: ApiRequest): Promise<Response> {
    const { served, limits } = this.generating();
    const body = readBody(request, responseRequest);
    this.checkModel(body.model);
    const chat = chatOf(body);
    try {
      const order = await chatOrder(served, chat, limits, request.signal);
      return await this.run(request, chat, order, () => responseFormat(served, body, chat));
    } catch (error) {
      throw ofResponses(error);
    }
  }

  private async complete(request: ApiRequest): Promise<Response> {
    const engine = this.generating();
    const { served, limits } = engine;
    const body = readBody(request, completionRequest);
    this.checkModel(body.model);
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(limits.seconds * 1000)]);
    const order = await completionOrder(engine, body, signal);
    return this.run(request, body, order, () => completionFormat(served, body, order));
  }

  private async embed(request: ApiRequest): Promise<Response> {
    const { served, limits } = this;
    const body = readBody(request, embeddingRequest);
    this.checkModel(body.model);
    if ("model" in served) return embeddings(served, limits, body, request.signal);
    if ("encoder" in served) return encoderEmbeddings(served, limits, body);
    throw new ApiError(404, `the model ${served.name} recognizes speech, and has no embeddings`);
  }

  /** @param returnsDocuments the default of `return_documents`: true for Jina's clients, false for Cohere's */
  private async rerank(request: ApiRequest, returnsDocuments: boolean): Promise<Response> {
    const { served, limits } = this;
    const body = readBody(request, rerankRequest);
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

  private run(request: ApiRequest, body: Order["shared"], order: Order, format: () => Session["format"]) {
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
    const done: Session["done"] = (outcome) => {
      clearTimeout(timer);
      request.signal.removeEventListener("abort", left);
      this.metrics.ended(request.signal.aborted ? "left" : outcome, work.usage, (performance.now() - start) / 1000);
    };
    const session = { work, format: format(), done };
    return body.stream ? streamedAnswer(session, body.stream_options?.include_usage === true) : wholeAnswer(session);
  }

  /** Rejects new requests and waits up to `seconds` for running ones to finish, then aborts the rest. */
  async close(seconds = 30): Promise<void> {
    const [front] = this.front!;
    await front.close(seconds);
    this.engine?.batcher.dispose();
    await front.stop();
  }
}

function contextOf(served: Served): number {
  if ("model" in served) return served.model.contextLength;
  if ("encoder" in served) return served.encoder.contextLength;
  const { speech } = served;
  return speech instanceof Wav2Vec2 ? speech.framesOf(WINDOW_SAMPLES) : speech.description.contextLength;
}
