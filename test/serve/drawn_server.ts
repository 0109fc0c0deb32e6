/** Serves a tiny model in a separate process, and prints its URL. */
import { setBackend } from "../../src/index.ts";
import { ModelServer } from "../../src/serve/server.ts";
import { ChatTemplate } from "../../src/text/chat_template.ts";
import { served, TEMPLATE } from "./served.ts";

setBackend("cpu");
const own = { ...served(), template: new ChatTemplate(`${TEMPLATE}{# tools <tool_call> #}`) };
const server = new ModelServer(own, { port: 0, limits: { tokens: 16, bodySeconds: 1 } });
console.log(server.url);
