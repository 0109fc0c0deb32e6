/**
 * Who may ask. A server on the loopback interface can be reached by every web page that the user has open: a page of
 * another site has another `Origin`, and one whose name was rebound to 127.0.0.1 another `Host`. A key keeps out other
 * users and machines.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { ApiError } from "./api_error.ts";

export interface AccessOptions {
  /** What clients send as `Authorization: Bearer …`. Without it anybody who reaches the server may ask. */
  readonly key?: string | undefined;
  /** The origins of web pages that may ask, or `"*"` for all. Default: none but the server's own page. */
  readonly origins: readonly string[];
  /** Whether the server listens on the loopback interface alone. */
  readonly isLoopback: boolean;
}

const LOOPBACK = /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/i;

export class Access {
  constructor(private readonly options: AccessOptions) {}

  /** @throws {ApiError} 403 for another host or origin. */
  checkOrigin(request: Request): void {
    const host = request.headers.get("host") ?? "";
    if (this.options.isLoopback && !LOOPBACK.test(host))
      throw new ApiError(403, "expected a Host of the loopback interface, such as localhost", "wrong_host");
    const origin = request.headers.get("origin");
    if (origin === null || isOwn(origin.toLowerCase(), host.toLowerCase()) || this.allows(origin)) return;
    throw new ApiError(
      403,
      `expected no request of the web page ${JSON.stringify(origin.slice(0, 200))}`,
      "wrong_origin",
    );
  }

  /** @throws {ApiError} 401 for a missing or wrong key. */
  checkKey(request: Request): void {
    const { key } = this.options;
    if (key === undefined) return;
    const given = /^Bearer\s+(\S+)\s*$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    if (given !== undefined && isEqual(given, key)) return;
    const text = given === undefined ? "expected a key: Authorization: Bearer KEY" : "expected another key";
    throw new ApiError(401, text, "invalid_api_key", null, { "WWW-Authenticate": "Bearer" });
  }

  /** The headers by which browsers let the page of another site read an answer. */
  corsHeaders(request: Request): Record<string, string> {
    const origin = request.headers.get("origin");
    if (origin === null || !this.allows(origin)) return {};
    return {
      "Access-Control-Allow-Origin": origin,
      "Access-Control-Allow-Headers": "authorization, content-type",
      "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
      Vary: "Origin",
    };
  }

  private allows(origin: string): boolean {
    return this.options.origins.some((own) => own === "*" || own.toLowerCase() === origin.toLowerCase());
  }
}

/** Whether it is the server's own page, also behind a proxy that adds TLS. */
const isOwn = (origin: string, host: string): boolean => [`http://${host}`, `https://${host}`].includes(origin);

/** Takes as long for texts that differ early as for texts that differ late. */
const isEqual = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
