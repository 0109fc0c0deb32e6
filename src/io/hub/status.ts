/** Errors for HTTP statuses, with advice. */
import { DownloadError } from "./errors.ts";

/** The model of a request. */
export interface Asked {
  readonly endpoint: string;
  readonly name: string;
  readonly revision: string;
  readonly hasToken: boolean;
}

const TOKEN = "set HF_TOKEN to a token that may read it";

const withoutAccess = ({ endpoint, name, hasToken }: Asked): string =>
  hasToken
    ? `the token has no access to ${name}: accept its terms at ${endpoint}/${name}, or set another HF_TOKEN`
    : `${name} needs a token: accept its terms at ${endpoint}/${name}, and ${TOKEN}`;

const missing = ({ name, hasToken }: Asked): string =>
  `the hub has no model ${name}${hasToken ? " that the token may read" : `; if it is private, ${TOKEN}`}`;

/** Advice by the value of the header `x-error-code`, which distinguishes a private model from a missing file. */
const byCode: Readonly<Record<string, (asked: Asked) => string>> = {
  GatedRepo: withoutAccess,
  RepoNotFound: missing,
  RevisionNotFound: ({ name, revision }) => `${name} has no branch, tag or commit ${revision}`,
  EntryNotFound: ({ name }) => `${name} has no such file`,
};

const byStatus: Readonly<Record<number, (asked: Asked) => string>> = {
  401: (asked) => (asked.hasToken ? `the hub rejects the token: set another HF_TOKEN` : withoutAccess(asked)),
  403: withoutAccess,
  404: ({ name, revision }) => `there is no model ${name} with the revision ${revision}, or no such file`,
  429: () => "too many requests: wait, and try again; with HF_TOKEN, the hub allows more",
};

const codes: Readonly<Record<number, string>> = { 401: "unauthorized", 403: "forbidden", 404: "notFound" };

/** Checks the status of a response. @throws {DownloadError} for any status except success. */
export function checkStatus(response: Response, url: string, asked: Asked): void {
  const { status, headers } = response;
  if (response.ok) return;
  const hint = byCode[headers.get("x-error-code") ?? ""] ?? byStatus[status];
  const code = status >= 500 || status === 429 || status === 408 ? "unavailable" : (codes[status] ?? "refused");
  throw new DownloadError(code, url, `expected status 200, got ${status}${hint ? `; ${hint(asked)}` : ""}`, {
    retryMilliseconds: retryAfter(headers.get("retry-after")),
  });
}

/** Reads `retry-after`: seconds, or a date (RFC 9110, section 10.2.3). */
function retryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
