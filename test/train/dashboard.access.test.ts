/** Who may read a run's page: raw requests, as browsers of other sites, other programs and attackers send them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { Dashboard } from "../../src/train/dashboard/server.ts";
import { within } from "../support/wait.ts";
import { startEvent } from "./events.ts";

let dashboard: Dashboard;
let port: string;
let token: string;
beforeAll(() => {
  dashboard = new Dashboard();
  dashboard.on({ ...startEvent, settings: { data: ["/home/me/secret.txt"] } } as typeof startEvent);
  ({ port } = new URL(dashboard.url));
  token = new URL(dashboard.url).searchParams.get("token")!;
});
afterAll(() => dashboard.close());

/** Whether this is a complete response: an event after the upgrade, or a body of the stated length. */
function isWhole(got: string): boolean {
  if (/^HTTP\/1\.1 101/.test(got)) return got.includes("secret");
  const [head, ...parts] = got.split("\r\n\r\n");
  if (parts.length === 0) return false;
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  // Without a length the server closes the connection.
  return length !== undefined && parts.join("\r\n\r\n").length >= Number(length);
}

/** Sends a raw request, and returns the response, or what arrived until the server closed the connection. */
function send(lines: readonly string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(Number(port), "127.0.0.1", () => socket.write(`${lines.join("\r\n")}\r\n\r\n`));
  let got = "";
  socket.setEncoding("latin1");
  socket.on("data", (part) => {
    got += part;
    if (isWhole(got)) socket.destroy();
  });
  socket.on("error", reject);
  socket.on("close", () => resolve(got));
  return within(`the answer to ${lines[0]}`, promise);
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
const upgrade = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** A request for a path with the token, or another one, and these headers in addition to those of a WebSocket. */
const get = (path: string, headers: readonly string[], with_ = token, method = "GET") => {
  const query = with_ === "" ? "" : `?token=${with_}`;
  return send([`${method} ${path}${query} HTTP/1.1`, ...headers, ...(path === "/events" ? upgrade : [])]);
};
const local = () => `Host: 127.0.0.1:${port}`;

const paths = ["/", "/events", "/page.css", "/client.ts", "/settings.json", "/log.jsonl", "//", "/%2e%2e/package.json"];

describe.each(paths)("requests to the dashboard are checked: %s", (path) => {
  const expectRefused = async (answer: Promise<string>, status = 403) => {
    const text = await answer;
    expect(statusOf(text)).toBe(status);
    for (const hidden of ["secret", "<html", token]) expect(text).not.toContain(hidden);
  };

  test("a request to another host is rejected, as in DNS rebinding, even if everything else is right", async () => {
    const hosts = ["evil.example", `evil.example:${port}`, `127.0.0.1.evil.example:${port}`, "127.0.0.1", "localhost"];
    const ports = ["127.0.0.1:1", `0.0.0.0:${port}`, `192.168.0.1:${port}`, `localhost.:${port}`, `[::]:${port}`, ""];
    await Promise.all([...hosts, ...ports].map((host) => expectRefused(get(path, [`Host: ${host}`]))));
    await expectRefused(get(path, [`Host: evil.example:${port}`, `Origin: http://evil.example:${port}`]));
  });

  test("a request without a host is rejected", async () => {
    expect(statusOf(await get(path, []))).toBeGreaterThanOrEqual(400);
  });

  test("a request to a page of another origin is rejected, even if everything else is right", async () => {
    const origins = ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "http://127.0.0.1", ""];
    const near = [`https://127.0.0.1:${port}`, `http://localhost:${port}`, `http://127.0.0.1:${port}.evil.example`];
    await Promise.all([...origins, ...near].map((origin) => expectRefused(get(path, [local(), `Origin: ${origin}`]))));
  });

  test("a request without the token, or with another one, is rejected", async () => {
    const others = ["", "x", token.slice(0, -1), `${token}x`, token.toLowerCase(), "x".repeat(5000), "%00", "%ff"];
    await Promise.all(others.map((other) => expectRefused(get(path, [local()], other))));
    await expectRefused(get(path, [local(), `Origin: http://127.0.0.1:${port}`], ""));
    await expectRefused(get(path, [local(), `Authorization: Bearer ${token}`, `Cookie: token=${token}`], ""));
  });
});

describe("a request with the right host and token is answered", () => {
  const hosts = () => [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`];

  test("the page is served, and sends no referrer", async () => {
    for (const host of hosts()) {
      const answer = await get("/", [`Host: ${host}`]);
      expect(statusOf(answer)).toBe(200);
      expect(answer).toContain("Orchard: training");
      expect(answer).toMatch(/^referrer-policy: no-referrer\r$/im);
      expect(answer).toMatch(/^cache-control: no-store\r$/im);
      expect(answer).toMatch(/^content-security-policy: default-src 'none';.*frame-ancestors 'none'/im);
      expect(answer).not.toMatch(/<script[^>]* src=|<link[^>]* href=/); // the page requests no other files
    }
  });

  test("events go to the page itself, and to a program, which has no origin", async () => {
    for (const host of hosts()) {
      const origin = `Origin: http://${host.toLowerCase()}`;
      for (const more of [[], [origin]]) {
        const answer = await get("/events", [`Host: ${host}`, ...more]);
        expect(statusOf(answer)).toBe(101);
        expect(answer).toContain("/home/me/secret.txt");
      }
    }
  });

  test("other paths are not found, and other methods not allowed", async () => {
    for (const path of paths.slice(2)) expect(statusOf(await get(path, [local()]))).toBe(404);
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"])
      expect(statusOf(await get("/", [local()], token, method))).toBe(405);
    expect(statusOf(await send([`GET /events?token=${token} HTTP/1.1`, local()]))).toBe(426); // not a WebSocket
  });
});

test("each server has its own token, of 192 random bits", async () => {
  const others = [new Dashboard(), new Dashboard()];
  const tokens = [dashboard, ...others].map(({ url }) => new URL(url).searchParams.get("token")!);
  expect(new Set(tokens).size).toBe(3);
  for (const each of tokens) expect(Buffer.from(each, "base64url")).toHaveLength(24);
  for (const other of others) await other.close();
});

test("the server listens on the loopback address only", () => {
  expect(new URL(dashboard.url).hostname).toBe("127.0.0.1");
});
