/** `orchard pull`: the run. */
import { OrchardError } from "../core/errors.ts";
import { usualPatience } from "../io/hub/locate.ts";
import { downloadLine } from "../io/hub/progress.ts";
import { pull } from "../io/hub/pull.ts";
import { MAIN, parseReference } from "../io/hub/reference.ts";
import { hubSettings } from "../io/hub/settings.ts";
import type { PullFlags } from "./pull.ts";

/** Downloads a model and returns the exit code. After Ctrl-C, the next call resumes the download. */
export async function runPull(given: string, { revision, include, timeout }: PullFlags): Promise<number> {
  if (!(timeout > 0 && timeout <= 86_400))
    return failed(`expected --timeout to be a number of seconds above 0 and at most 86400, got ${timeout}`);
  const parsed = parseReference(given) ?? { name: given, revision: MAIN, quantization: undefined };
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.on("SIGINT", stop);
  const line = downloadLine("files");
  try {
    const settings = hubSettings();
    if (settings.isOffline) return failed("HF_HUB_OFFLINE is set; unset it to download");
    const { path } = await pull(parsed.name, {
      ...settings,
      ...parsed,
      ...(revision !== undefined && { revision }),
      include,
      ...usualPatience,
      stallMilliseconds: timeout * 1000,
      signal: controller.signal,
      onProgress: line.show,
    });
    line.end();
    console.log(path);
    return 0;
  } catch (error) {
    line.end();
    if (controller.signal.aborted) {
      console.error("stopped; run the same command again to resume");
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
