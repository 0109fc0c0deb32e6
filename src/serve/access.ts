/**
 * Access control. Every web page that the user has open can reach a server on the loopback interface. Pages of other
 * sites are recognized by their `Origin`, and pages whose name was rebound to 127.0.0.1 (DNS rebinding) by their
 * `Host`. A key keeps out other users and machines.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { ApiError } from "./api_error.ts";

export interface AccessOptions {
  /** The key that clients send as `Authorization: Bearer …`. Without a key, every client is allowed. */
  readonly key?: string | undefined;
  /** The origins of web pages that may send requests, or `"*"` for all. Default: only the server's page. */
  readonly origins: readonly string[];
  /** Whether the server listens only on the loopback interface. */
  readonly isLoopback: boolean;
}

const LOOPBACK = /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/i;

export class Access {
  constructor(private readonly options: AccessOptions) {}

  /** Checks the host and origin of a request. @throws {ApiError} 403 if they are not allowed. */
  checkOrigin(request: Request): void {
    const host = request.headers.get("host") ?? "";
    if (this.options.isLoopback && !LOOPBACK.test(host))
      throw new ApiError(403, "expected a Host on the loopback interface, such as localhost", "wrong_host");
    const origin = request.headers.get("origin");
    if (origin === null || isOwn(origin.toLowerCase(), host.toLowerCase()) || this.allows(origin)) return;
    throw new ApiError(
      403,
      `requests from the web page ${JSON.stringify(origin.slice(0, 200))} are not allowed`,
      "wrong_origin",
    );
  }

  /** Checks the key of a request. @throws {ApiError} 401 for a missing or wrong key. */
  checkKey(request: Request): void {
    const { key } = this.options;
    if (key === undefined) return;
    const given = /^Bearer\s+(\S+)\s*$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    if (given !== undefined && isEqual(given, key)) return;
    const text =
      given === undefined
        ? "expected a key: Authorization: Bearer KEY"
        : "the key in the Authorization header is wrong";
    throw new ApiError(401, text, "invalid_api_key", null, { "WWW-Authenticate": "Bearer" });
  }

  /** Returns the headers that let browsers show an answer to pages of other sites. */
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
    return this.options.origins.some((allowed) => allowed === "*" || allowed.toLowerCase() === origin.toLowerCase());
  }
}

/** Whether the origin is the server's page, possibly behind a proxy that adds TLS. */
const isOwn = (origin: string, host: string): boolean => [`http://${host}`, `https://${host}`].includes(origin);

/** Compares texts in constant time. */
const isEqual = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
