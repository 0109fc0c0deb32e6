import { OrchardError } from "../../core/errors.ts";

/** Options of {@link DownloadError}. */
export interface DownloadErrorOptions extends ErrorOptions {
  /** The time after which the server allows another request, from `retry-after`. */
  readonly retryMilliseconds?: number | undefined;
}

/** A failed download: an error of the server or the network, or data that differs from what was announced. */
export class DownloadError extends OrchardError {
  override readonly name = "DownloadError";
  readonly url: string;
  /** @internal */
  readonly retryMilliseconds: number | undefined;

  constructor(
    code: string,
    url: string,
    message: string,
    { retryMilliseconds, ...options }: DownloadErrorOptions = {},
  ) {
    super("pull", code, `${url}: ${message}`, options);
    this.url = url;
    this.retryMilliseconds = retryMilliseconds;
  }
}
