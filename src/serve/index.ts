/** The entry `orchard-metal/serve`: a server of a model with OpenAI's API. Its modules load at the first call. */
import type { BatcherOptions } from "../nn/generation/batcher.ts";
import type { LoadModelOptions } from "../nn/models/loading/load_model.ts";
import type { Limits } from "./limits.ts";
import type { ServerOptions } from "./server_options.ts";

export type { Limits } from "./limits.ts";

/** Options of {@link serve}. */
export interface ServeOptions
  extends Pick<LoadModelOptions, "dtype" | "quantize" | "precision" | "mmproj" | "offline">,
    Omit<ServerOptions, "batcher" | "limits">,
    Pick<BatcherOptions, "slots" | "queue" | "cache"> {
  /** The model's name in requests. Default: the name of the folder or file, or the name on the hub. */
  readonly name?: string | undefined;
  /** The folder of a LoRA adapter. */
  readonly adapter?: string | undefined;
  /** Limits on requests. */
  readonly limits?: Partial<Limits> | undefined;
}

/** A running server. */
export interface ModelService extends AsyncDisposable {
  /** Such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** The model's name in requests. */
  readonly name: string;
  /** Rejects new requests, and waits up to `seconds` for running ones, by default 30. */
  close(seconds?: number): Promise<void>;
}

/**
 * Loads a model and serves it with OpenAI's API, as `orchard serve` does: chats, completions, embeddings, reranking and
 * speech, by the kind of model.
 *
 * @param model a folder in Hugging Face's format, a GGUF file, or a name on the hub
 *
 * @example
 * import { serve } from "orchard-metal/serve";
 *
 * await using server = await serve("models/SmolLM2-135M-Instruct", { port: 0, slots: 4 });
 * console.log(server.url);
 *
 * @throws {ArgumentError} for an address that requires a key, or unknown options.
 * @throws {FileError} @throws {FileFormatError} for models that can't be loaded.
 */
export async function serve(model: string, options?: ServeOptions): Promise<ModelService>;
export async function serve(...values: unknown[]): Promise<ModelService> {
  const { start } = await import("./start.ts");
  return start(values);
}
