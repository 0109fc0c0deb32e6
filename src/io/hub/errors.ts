import { OrchardError } from "../../core/errors.ts";

/** A failed download: an error of the server or the network, or data that differs from what was announced. */
export class DownloadError extends OrchardError {
  override readonly name = "DownloadError";
  readonly url: string;

  constructor(code: string, url: string, message: string, options?: ErrorOptions) {
    super("pull", code, `${url}: ${message}`, options);
    this.url = url;
  }
}
