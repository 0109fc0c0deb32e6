/**
 * Renders Markdown as DOM elements. The package parses it; this module creates elements from a fixed set, and all text
 * becomes text nodes. So the model's output is never parsed as HTML.
 */
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";

/** Deeper nesting is shown as source text. */
const DEEPEST = 40;

/** Renders a text; returns it as a text node if parsing fails, such as by a stack overflow from deep nesting. */
export function rendered(text: string): Node {
  try {
    return fragment(new Lexer({ gfm: true, breaks: true }).lex(text), 0);
  } catch {
    return make("p", [document.createTextNode(text)]);
  }
}

function make(name: string, children: readonly Node[]): HTMLElement {
  const element = document.createElement(name);
  element.append(...children);
  return element;
}

function fragment(tokens: readonly Token[], depth: number): DocumentFragment {
  const nodes = document.createDocumentFragment();
  for (const token of tokens) nodes.append(nodeOf(token as MarkedToken, depth));
  return nodes;
}

const inner = ({ tokens, raw }: { tokens?: Token[] | undefined; raw: string }, depth: number): Node =>
  tokens === undefined || depth >= DEEPEST ? textNode(raw) : fragment(tokens, depth + 1);

const textNode = (text: string): Text => document.createTextNode(withoutEntities(text));

type Make<T> = (token: T, depth: number) => Node;

/** Creates a node for each type of token. HTML and unknown types are shown as source text. */
const makers: { readonly [Type in MarkedToken["type"]]?: Make<Extract<MarkedToken, { type: Type }>> } = {
  space: () => textNode(""),
  def: () => textNode(""),
  hr: () => make("hr", []),
  br: () => make("br", []),
  heading: (token, depth) => make(`h${Math.min(6, token.depth + 1)}`, [inner(token, depth)]),
  paragraph: (token, depth) => make("p", [inner(token, depth)]),
  blockquote: (token, depth) => make("blockquote", [inner(token, depth)]),
  strong: (token, depth) => make("strong", [inner(token, depth)]),
  em: (token, depth) => make("em", [inner(token, depth)]),
  del: (token, depth) => make("del", [inner(token, depth)]),
  code: ({ text }) => make("pre", [make("code", [document.createTextNode(text)])]),
  codespan: ({ text }) => make("code", [document.createTextNode(text)]),
  escape: ({ text }) => document.createTextNode(text),
  text: (token, depth) => (token.tokens ? inner(token, depth) : textNode(token.text)),
  link: (token, depth) => link(token.href, inner(token, depth)),
  image: ({ href, text }) => link(href, textNode(text || href)), // images are not loaded from other servers
  checkbox: ({ checked }) => document.createTextNode(checked ? "☑ " : "☐ "),
  list: listOf,
  table: tableOf,
};

function nodeOf(token: MarkedToken, depth: number): Node {
  const maker = makers[token.type] as Make<MarkedToken> | undefined;
  return maker ? maker(token, depth) : document.createTextNode(token.raw);
}

function listOf({ ordered, start, items }: Tokens.List, depth: number): Node {
  const list = make(
    ordered ? "ol" : "ul",
    items.map((item) => make("li", [inner(item, depth)])),
  );
  if (ordered && typeof start === "number" && start !== 1) list.setAttribute("start", String(start));
  return list;
}

function tableOf({ header, rows }: Tokens.Table, depth: number): Node {
  const row = (name: string, cells: readonly Tokens.TableCell[]) =>
    make(
      "tr",
      cells.map((cell) => make(name, [fragment(cell.tokens, depth + 1)])),
    );
  const body = rows.map((cells) => row("td", cells));
  return make("table", [make("thead", [row("th", header)]), make("tbody", body)]);
}

const SAFE = new Set(["http:", "https:", "mailto:"]);

/** Creates a link that opens in a new tab. Addresses of other schemes are shown as text. */
function link(href: string, content: Node): Node {
  if (!URL.canParse(href) || !SAFE.has(new URL(href).protocol)) return content;
  const anchor = make("a", [content]);
  for (const [name, value] of Object.entries({ href, target: "_blank", rel: "noopener noreferrer nofollow" }))
    anchor.setAttribute(name, value);
  return anchor;
}

const entities: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": "\u00a0",
};

/** The most frequent entities in text. */
const withoutEntities = (text: string): string =>
  text.replace(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => entities[entity]!);
