import { OrchardError } from "../../core/errors.ts";

/** A download that failed: the server, the network, or what came is not what was announced. */
export class DownloadError extends OrchardError {
  override readonly name = "DownloadError";
  readonly url: string;

  constructor(code: string, url: string, message: string, options?: ErrorOptions) {
    super("pull", code, `${url}: ${message}`, options);
    this.url = url;
  }
}
