/**
 * The settings of model sources, from the environment variables of Hugging Face's tools, with the same meaning as in
 * `huggingface_hub`.
 */
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { environment } from "../../core/environment.ts";
import { ArgumentError } from "../../core/errors.ts";

/** The hub to download from, and the cache to search first. */
export interface HubSettings {
  /** The origin of the hub, without a trailing slash. */
  readonly endpoint: string;
  /** The folder with `models--owner--name`, which Hugging Face's tools share. */
  readonly cache: string;
  readonly token: string | undefined;
  /** Whether only the cache may be used. */
  readonly isOffline: boolean;
}

type Values = Record<string, string | undefined>;

/** The address that Hugging Face's tools use by default. */
const PUBLIC_HUB = "https://huggingface.co";

/** Reads the settings from the environment. @throws {ArgumentError} `invalidSetting` for an invalid `HF_ENDPOINT` */
export function hubSettings(values: Values = process.env): HubSettings {
  const endpoint = (environment("HF_ENDPOINT", values) ?? PUBLIC_HUB).replace(/\/+$/, "");
  if (!/^https?:\/\/[^/]/.test(endpoint))
    throw new ArgumentError(
      "pull",
      "invalidSetting",
      `expected HF_ENDPOINT to be the URL of a hub, such as ${PUBLIC_HUB}, got ${endpoint}`,
    );
  const isOffline = /^(1|on|yes|true)$/i.test(environment("HF_HUB_OFFLINE", values) ?? "");
  return { endpoint, cache: hubCache(values), token: tokenOf(values), isOffline };
}

/** Returns the folder of the model cache. */
export const hubCache = (values: Values = process.env): string =>
  expanded(environment("HF_HUB_CACHE", values), values) ?? join(hubHome(values), "hub");

function hubHome(values: Values): string {
  const caches = expanded(environment("XDG_CACHE_HOME", values), values) ?? join(userFolder(values), ".cache");
  return expanded(environment("HF_HOME", values), values) ?? join(caches, "huggingface");
}

const userFolder = (values: Values): string => values["HOME"] || homedir();

const expanded = (path: string | undefined, values: Values): string | undefined =>
  path?.replace(/^~(?=\/|$)/, () => userFolder(values));

/** Returns the token from HF_TOKEN, or from the file in which Hugging Face's tools store it. */
function tokenOf(values: Values): string | undefined {
  const path = expanded(environment("HF_TOKEN_PATH", values), values) ?? join(hubHome(values), "token");
  const stored = existsSync(path) ? readFileSync(path, "utf8").trim() : "";
  return environment("HF_TOKEN", values)?.trim() || stored || undefined;
}
