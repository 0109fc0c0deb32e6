/** The implementations of `orchard chat` and `orchard serve`. */
import type { BackendName } from "../backend/names.ts";
import { setBackend } from "../backend/policy.ts";
import { environment } from "../core/environment.ts";
import { reportErrors } from "../core/report_errors.ts";
import type { CacheFormat } from "../nn/cache/store.ts";
import type { LoadModelOptions } from "../nn/models/loading/load_model.ts";
import { runChatLoop } from "./chat_loop.ts";
import { type ChatOptions, ChatSession } from "./chat_session.ts";
import { defaultLimits } from "./limits.ts";
import { loadAnyServed, loadServed } from "./load.ts";
import { ModelServer } from "./server.ts";

/** Options for loading a model. */
export interface ModelFlags {
  readonly dtype?: LoadModelOptions["dtype"];
  readonly quantize?: LoadModelOptions["quantize"];
  /** The folder of a LoRA adapter. */
  readonly adapter?: string;
  /** The GGUF file of an image encoder, for a language model in a GGUF file. */
  readonly mmproj?: string;
  readonly backend?: BackendName;
  readonly cache?: CacheFormat;
  /** Whether to use only the cache, without a download. */
  readonly offline?: boolean;
}

export interface ChatFlags extends ModelFlags {
  readonly system?: string;
  readonly tokens: number;
  readonly temperature?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
  readonly repetitionPenalty?: number;
  readonly seed?: number;
  /** Files of images for the first message. */
  readonly image?: readonly string[];
}

export interface ServeFlags extends ModelFlags {
  readonly name?: string;
  readonly host: string;
  readonly port: number;
  readonly key?: string;
  readonly cors?: readonly string[];
  readonly slots: number;
  readonly queue: number;
  readonly maxBody?: number;
  readonly maxTokens?: number;
  readonly maxSeconds?: number;
  readonly maxConnections?: number;
  readonly imageUrls?: boolean;
}

const optionsOf = ({ backend, dtype, quantize, adapter, mmproj, offline }: ModelFlags) => {
  if (backend) setBackend(backend);
  return { dtype, quantize, adapter, mmproj, offline };
};

/** Runs `orchard chat`. Returns the exit code. */
export const runChat = (path: string, flags: ChatFlags): Promise<number> =>
  reportErrors(async () => {
    const { dtype: _, quantize: __, backend: ___, adapter: ____, offline: _____, ...others } = flags;
    const { mmproj: ______, tokens: maxTokens, image: images = [], ...options } = others;
    const chat: ChatOptions = { ...options, maxTokens };
    using session = new ChatSession(await loadServed(path, optionsOf(flags)), chat);
    for (const image of images) session.attach(image);
    const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
    const columns = isTerminal ? (process.stdout.columns ?? 80) : undefined;
    return await runChatLoop(session, { input: process.stdin, output: process.stdout, notes: process.stderr, columns });
  });

/** Runs `orchard serve` until a signal ends it. Returns the exit code. */
export const runServe = (path: string, flags: ServeFlags): Promise<number> =>
  reportErrors(async () => {
    const ended = Promise.withResolvers<number>();
    const signals = ["SIGINT", "SIGTERM"] as const;
    const end = () => {
      for (const signal of signals) process.off(signal, end); // a second signal ends the process immediately
      ended.resolve(0);
    };
    for (const signal of signals) process.on(signal, end);
    const served = await loadAnyServed(path, optionsOf(flags), flags.name);
    const server = await ModelServer.start(served, {
      host: flags.host,
      port: flags.port,
      origins: flags.cors,
      key: flags.key ?? environment("ORCHARD_SERVE_KEY"),
      batcher: { slots: flags.slots, queue: flags.queue, cache: flags.cache },
      limits: {
        ...(flags.maxBody !== undefined && { bodyBytes: flags.maxBody, formBytes: flags.maxBody }),
        imageUrls: flags.imageUrls ?? defaultLimits.imageUrls,
        tokens: flags.maxTokens ?? defaultLimits.tokens,
        seconds: flags.maxSeconds ?? defaultLimits.seconds,
        connections: flags.maxConnections ?? defaultLimits.connections,
      },
    });
    const page = "model" in served ? `\nchat in a browser: ${server.url}/` : "";
    console.log(`serving ${served.name} at ${server.url}${page}`);
    const code = await ended.promise;
    console.error("closing; finishing the answers in progress");
    await server.close();
    return code;
  });
