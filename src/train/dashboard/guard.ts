/**
 * Access control of the dashboard: only browsers and programs on this machine that know the token may read a run.
 *
 * The server listens on the loopback interface, but any web page that the user has open can send requests there. A page
 * of another site has another `Origin`. A page whose host name was rebound to 127.0.0.1 has another `Host`. The token
 * keeps out other users of the machine, and pages of servers on other ports.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { TOKEN_PARAMETER } from "./protocol.ts";

/** Names of the loopback interface, as they are in a `Host` header. */
const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"] as const;

/** Checks requests to one server. Each server has a separate token. */
export class Guard {
  readonly token: string = randomBytes(24).toString("base64url");

  /** @param port the port of the server */
  constructor(private readonly port: number) {}

  /** The address of a page or socket, with the token. */
  address(path: string, protocol: "http" | "ws" = "http"): string {
    return `${protocol}://${LOOPBACK[0]}:${this.port}${path}?${TOKEN_PARAMETER}=${this.token}`;
  }

  /** Returns why a request is rejected; undefined if it is allowed. */
  reasonAgainst(request: Request): string | undefined {
    const host = request.headers.get("host")?.toLowerCase();
    const origin = request.headers.get("origin")?.toLowerCase();
    if (host === undefined || !this.hosts.includes(host))
      return `expected the host to be 127.0.0.1 or localhost with port ${this.port}`;
    if (origin !== undefined && origin !== `http://${host}`) return "expected a page of this server";
    const token = new URL(request.url).searchParams.get(TOKEN_PARAMETER) ?? "";
    return isEqual(token, this.token) ? undefined : "expected the address that was printed, with its token";
  }

  /** Browsers leave out HTTP's default port. */
  private get hosts(): string[] {
    return LOOPBACK.flatMap((name) => [`${name}:${this.port}`, ...(this.port === 80 ? [name] : [])]);
  }
}

/** Compares texts in constant time. */
const isEqual = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
