import { aNumber, aPath, flag, listOf, text } from "../core/kinds.ts";
import { count, positive } from "../core/options.ts";
import { type Kind, named, operand, structure, unlisted } from "../core/parameters.ts";
import type { ModelService, ServeOptions } from "./index.ts";
import { loadAnyServed } from "./load.ts";
import { ModelServer } from "./server.ts";

/** Checked by the function that loads the model or makes the batcher. */
const checkedLater: Kind<unknown> = { expected: "any value", parse: (value) => value };
const isPort = (value: number) => Number.isInteger(value) && value >= 0 && value <= 65_535;
const [aCount, seconds] = [aNumber(count), aNumber(positive)];

const serveParameters = unlisted("serve", {
  model: operand(aPath),
  dtype: named(checkedLater),
  quantize: named(checkedLater),
  precision: named(checkedLater),
  mmproj: named(aPath),
  offline: named(flag),
  adapter: named(aPath),
  name: named(text),
  host: named(text),
  port: named(aNumber({ holds: isPort, expected: "a port from 0 to 65535" })),
  key: named(text),
  origins: named(listOf(text, "a list of origins")),
  slots: named(checkedLater),
  queue: named(checkedLater),
  cache: named(checkedLater),
  limits: named(
    structure({
      bodyBytes: named(aCount),
      formBytes: named(aCount),
      bodySeconds: named(seconds),
      tokens: named(aCount),
      seconds: named(seconds),
      connections: named(aCount),
      choices: named(aCount),
      imageUrls: named(flag),
    }),
  ),
});

/** Starts the server of {@link ServeOptions}. */
export async function start(values: readonly unknown[]): Promise<ModelService> {
  const { model, name, host, port, key, origins, limits = {}, ...rest } = serveParameters(values);
  const { slots, queue, cache, ...loading } = rest as Pick<ServeOptions, "dtype" | "slots" | "queue" | "cache">;
  const served = await loadAnyServed(model, loading, name);
  const given = Object.entries(limits).filter(([, value]) => value !== undefined);
  const server = await ModelServer.start(served, {
    host,
    port,
    key,
    origins,
    batcher: { slots, queue, cache },
    limits: Object.fromEntries(given) as ServeOptions["limits"],
  });
  const close = (wait?: number) => server.close(wait);
  return { url: server.url, name: served.name, close, [Symbol.asyncDispose]: () => close() };
}
