/** Signals to `orchard serve`. */
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { waitFor } from "../support/wait.ts";
import { writeModel } from "./folder.ts";

const { path: folder } = testFolder("serve-signals");

test.each([
  ["SIGINT", "SIGTERM"],
  ["SIGTERM", "SIGINT"],
  ["SIGTERM", "SIGTERM"],
] as const)("%s lets answers finish, %s after it ends the server at once", async (first, second) => {
  const model = join(folder, "tiny-llama");
  await writeModel(model);
  const child = Bun.spawn([...bunWords, "src/cli/orchard.ts", "serve", model, "--port", "0"], {
    ...({ stdin: "ignore", stdout: "pipe", stderr: "pipe", cwd: packageRoot } as const),
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  const { value } = await child.stdout.getReader().read();
  const url = / at (\S+)\n/.exec(new TextDecoder().decode(value))![1];
  // The server waits for a request's body that does not arrive.
  const head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  const socket = connect(Number(new URL(url).port), "127.0.0.1", () =>
    socket.write(`${head}Content-Length: 50\r\n\r\n{`),
  );
  socket.on("error", () => undefined);
  const inFlight = async () => (await (await fetch(`${url}/metrics`)).text()).includes("requests_in_flight 2");
  await waitFor("the request", inFlight);
  child.kill(first);
  const { value: said } = await child.stderr.getReader().read();
  expect(new TextDecoder().decode(said)).toMatch(/^closing; /);
  child.kill(second);
  await child.exited;
  expect(child.signalCode).toBe(second);
  socket.destroy();
});
