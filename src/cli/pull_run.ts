/** `orchard pull`: the run. */
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { environment } from "../core/environment.ts";
import { OrchardError } from "../core/errors.ts";
import { type PullProgress, pull } from "../io/hub/pull.ts";
import type { PullFlags } from "./pull.ts";

/** The folder of Hugging Face's model cache. */
export const hubHome = (): string => environment("HF_HOME") ?? join(homedir(), ".cache", "huggingface");

/** Downloads a model and returns the exit code. After Ctrl-C, the next call resumes the download. */
export async function runPull(name: string, { revision, include, timeout }: PullFlags): Promise<number> {
  const endpoint = environment("HF_ENDPOINT")?.replace(/\/+$/, "");
  if (endpoint === undefined || !/^https?:\/\/[^/]/.test(endpoint))
    return failed(
      `expected HF_ENDPOINT to be the URL of a hub, such as https://hub.example, got ${endpoint ?? "nothing"}`,
    );
  if (!(timeout > 0 && timeout <= 86_400))
    return failed(`expected --timeout to be a number of seconds above 0 and at most 86400, got ${timeout}`);
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.on("SIGINT", stop);
  try {
    const folder = await pull(name, {
      ...{ endpoint, home: hubHome(), token: tokenOf(), revision, include, signal: controller.signal },
      ...{ stallMilliseconds: timeout * 1000, attempts: 5, waitMilliseconds: 1000, onProgress: progressLine() },
    });
    if (process.stderr.isTTY) process.stderr.write("\n");
    console.log(folder);
    return 0;
  } catch (error) {
    if (controller.signal.aborted) {
      console.error("\nstopped; run the same command again to resume");
      return 130;
    }
    if (error instanceof OrchardError) return failed(error.message);
    throw error;
  } finally {
    process.off("SIGINT", stop);
  }
}

function failed(message: string): number {
  console.error(`error: ${message}`);
  return 1;
}

/** Returns the token from HF_TOKEN, or from the file in which Hugging Face's tools store it. */
function tokenOf(): string | undefined {
  const path = join(hubHome(), "token");
  return environment("HF_TOKEN") ?? (existsSync(path) ? readFileSync(path, "utf8").trim() || undefined : undefined);
}

const MILLISECONDS_BETWEEN_LINES = 200;

/** On a terminal, updates one line; elsewhere, prints a line per file. */
function progressLine(): (progress: PullProgress) => void {
  let [last, time] = [-1, 0];
  return ({ file, fileIndex, fileCount, bytes, totalBytes }) => {
    const text = `${fileIndex + 1} of ${fileCount}: ${file}, ${megabytes(bytes)} of ${megabytes(totalBytes)} MB`;
    const now = performance.now();
    if (!process.stderr.isTTY) {
      if (fileIndex !== last) console.error(text);
    } else if (fileIndex !== last || now - time > MILLISECONDS_BETWEEN_LINES || bytes === totalBytes) {
      time = now;
      const width = (process.stderr.columns || 80) - 1;
      process.stderr.write(`\r${text.slice(0, width).padEnd(width)}`);
    }
    last = fileIndex;
  };
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
