/** Limits on clients. */

/** Limits of a server. */
export interface Limits {
  /** Maximum bytes of a request's body. Default 4 MiB; 32 MiB for a model that reads images. */
  readonly bodyBytes: number;
  /** Maximum bytes of a form with a recording. Default 25 MiB, as in OpenAI's API. */
  readonly formBytes: number;
  /** Maximum seconds for a body to arrive. Default 30. */
  readonly bodySeconds: number;
  /** Maximum tokens generated for a request, over all its choices. Default 16,384. */
  readonly tokens: number;
  /** Maximum seconds of a request, including its wait. Default 600. */
  readonly seconds: number;
  /** Maximum number of simultaneous requests, active or waiting. Default 256. */
  readonly connections: number;
  /** Maximum choices of a request: `n` for each prompt. Default 16. */
  readonly choices: number;
  /** Whether requests may name http(s) URLs of images, which the server then downloads. Default false. */
  readonly imageUrls: boolean;
}

/** The default of `bodyBytes` for a model that reads images. */
export const BODY_WITH_IMAGES = 32 * 2 ** 20;

export const defaultLimits: Limits = {
  bodyBytes: 4 * 2 ** 20,
  formBytes: 25 * 2 ** 20,
  bodySeconds: 30,
  tokens: 16_384,
  seconds: 600,
  connections: 256,
  choices: 16,
  imageUrls: false,
};
