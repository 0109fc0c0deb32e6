/** What a server takes of a client, and how much of it. */

/** Limits of a server. */
export interface Limits {
  /** The bytes of a request's body. Default 4 MiB. */
  readonly bodyBytes: number;
  /** The seconds in which a body has to arrive. Default 30. */
  readonly bodySeconds: number;
  /** The tokens that are generated for one request, of all its choices together. Default 16,384. */
  readonly tokens: number;
  /** The seconds that a request may take, its wait included. Default 600. */
  readonly seconds: number;
  /** The requests that are answered or wait at a time. Default 256. */
  readonly connections: number;
  /** The choices of one request: `n` for each prompt. Default 16. */
  readonly choices: number;
}

export const defaultLimits: Limits = {
  bodyBytes: 4 * 2 ** 20,
  bodySeconds: 30,
  tokens: 16_384,
  seconds: 600,
  connections: 256,
  choices: 16,
};
