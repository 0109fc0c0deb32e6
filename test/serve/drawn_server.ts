/** Serves a tiny model in a separate process, and prints its URL. A parent process may ask for the server's turns. */
import { setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { served, TEMPLATE } from "./served.ts";
import { measureTurns } from "./turns.ts";

setBackend("cpu");
const own = { ...served(), template: new ChatTemplate(`${TEMPLATE}{# tools <tool_call> #}`) };
const server = await ModelServer.start(own, { port: 0, limits: { tokens: 16, bodySeconds: 1 } });
if (process.send) {
  const turns = measureTurns();
  process.on("message", () => process.send!(turns()));
}
console.log(server.url);
