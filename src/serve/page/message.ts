/** The view of a message: its text, which may grow, and a button that copies it. */
import { pictureOf } from "./images.ts";
import { rendered } from "./markdown.ts";

export type Kind = "user" | "assistant" | "error";

export class MessageView {
  readonly #article = document.createElement("article");
  readonly #body = document.createElement("div");
  readonly #kind: Kind;
  #text = "";
  #isDue = false;

  constructor(parent: HTMLElement, kind: Kind, text: string, images: readonly string[] = []) {
    this.#kind = kind;
    this.#article.className = kind;
    this.#body.className = "body";
    this.#article.append(...images.map(pictureOf), this.#body);
    if (kind !== "error") this.#article.append(this.#copyButton());
    parent.append(this.#article);
    this.add(text);
    this.draw();
    this.#article.scrollIntoView({ block: "end" });
  }

  /** The source text. */
  get text(): string {
    return this.#text;
  }

  /** Appends text. All text of a frame is drawn once, before the next frame. */
  add(text: string): void {
    this.#text += text;
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => this.draw());
  }

  draw(): void {
    this.#isDue = false;
    const { parentElement: list } = this.#article;
    const isAtEnd = list !== null && list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    if (this.#kind === "assistant") this.#body.replaceChildren(rendered(this.#text));
    else this.#body.textContent = this.#text;
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  }

  remove(): void {
    this.#article.remove();
  }

  #copyButton(): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      button.textContent = (await copied(this.#text)) ? "Copied" : "Not copied";
      setTimeout(() => {
        button.textContent = "Copy";
      }, 1500);
    });
    return button;
  }
}

/** Copies text. Pages of other hosts without HTTPS have no clipboard API, so a selection is copied instead. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}
