/** The documentation's site. `bun run docs` puts its pages into `build/pages` first. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { anchorOf } from "../../scripts/docs/anchors.ts";
import { searchable } from "./search.ts";

const repository = process.env["GITHUB_REPOSITORY"]
  ? `${process.env["GITHUB_SERVER_URL"]}/${process.env["GITHUB_REPOSITORY"]}`
  : undefined;

const pages = join(import.meta.dirname, "..", "build", "pages");

const guide = [
  {
    text: "Begin",
    items: [
      { text: "Start", link: "/start" },
      { text: "From PyTorch", link: "/from-pytorch" },
      { text: "From MLX", link: "/from-mlx" },
      { text: "From TensorFlow.js", link: "/from-tensorflow-js" },
      { text: "Indexing", link: "/indexing" },
      { text: "Memory", link: "/memory" },
      { text: "Compiled functions", link: "/compile" },
      { text: "Debugging", link: "/debugging" },
      { text: "Coverage", link: "/coverage" },
      { text: "Gallery", link: "/gallery" },
    ],
  },
  {
    text: "Models",
    items: [
      { text: "Layers and generation", link: "/nn" },
      { text: "Pretrained models", link: "/pretrained" },
      { text: "Supported language models", link: "/models" },
      { text: "Embeddings, rerankers, classifiers", link: "/encoders" },
      { text: "Speech recognition", link: "/speech" },
      { text: "Images", link: "/vision" },
      { text: "Chat about images", link: "/vision-chat" },
      { text: "Translation and summaries", link: "/translation" },
      { text: "Diffusion models", link: "/diffusion" },
      { text: "ONNX models", link: "/onnx" },
      { text: "Chats and serving", link: "/serving" },
      { text: "Training and text", link: "/training" },
      { text: "Saving and loading", link: "/saving" },
      { text: "Data", link: "/data" },
      { text: "Attention", link: "/attention" },
      { text: "Linear algebra", link: "/linalg" },
      { text: "Fourier transforms and signals", link: "/fft" },
      { text: "Complex numbers", link: "/complex" },
      { text: "Transformations", link: "/transforms" },
      { text: "Distributions", link: "/distributions" },
      { text: "Quantization", link: "/quantization" },
      { text: "Several processes", link: "/distributed" },
      { text: "Ship a program", link: "/shipping" },
    ],
  },
  {
    text: "Kernels and backends",
    items: [
      ...(existsSync(join(pages, "kernels.md")) ? [{ text: "Custom kernels", link: "/kernels" }] : []),
      { text: "The checker", link: "/checker" },
      { text: "Swift programs on Linux", link: "/swift" },
      { text: "NVIDIA GPUs", link: "/gpu" },
      { text: "Overrides and routes", link: "/overrides" },
      { text: "Performance", link: "/performance" },
      { text: "Environment variables", link: "/environment" },
    ],
  },
  {
    text: "The project",
    items: [
      { text: "Contributing", link: "/contributing" },
      { text: "Architecture", link: "/architecture" },
      { text: "Add an operation", link: "/adding-an-operation" },
      { text: "Apple's hardware", link: "/apple" },
      { text: "Decisions", link: "/decisions/0001-software-metal-device" },
      { text: "Security", link: "/security" },
      { text: "Changelog", link: "/changelog" },
    ],
  },
];

/** Only the pages that list others: a list of all on each of 700 pages would be most of the site. */
const api = [
  {
    text: "API",
    items: [
      { text: "Everything", link: "/api/" },
      { text: "Tensor", link: "/api/classes/Tensor" },
      ...[
        "data",
        "diffusion",
        "distributed",
        "distributions",
        "fft",
        "io",
        "linalg",
        "metrics",
        "nn",
        "optim",
        "signal",
        "text",
        "transforms",
      ].map((name) => ({
        text: name,
        link: `/api/orchard-metal/namespaces/${name}/`,
      })),
    ],
  },
  ...guide.slice(0, 3).map((group) => ({ ...group, collapsed: true })),
];

const base = process.env["DOCS_BASE"] ?? "/";

/**
 * A draft takes half the time for a page: without colors in code, without minified scripts, and of the API's pages only
 * that of `Tensor` has a sidebar. Pages that passed before are left out: see scripts/docs/known.ts.
 */
const isDraft = process.env["DOCS_DRAFT"] === "1";

const plainCode = (code: string): string => `<pre v-pre><code>${Bun.escapeHTML(code)}</code></pre>`;

export default defineConfig({
  title: "Orchard",
  description: "Tensors, gradients and Metal kernels for Bun",
  lang: "en",
  base,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}favicon.svg` }]],
  srcDir: "build/pages",
  outDir: "../build/docs",
  cacheDir: "build/cache",
  vite: {
    publicDir: join(import.meta.dirname, "public"),
    ...(isDraft ? { build: { minify: false, reportCompressedSize: false } } : {}),
  },
  ...(isDraft ? { ignoreDeadLinks: true } : {}), // a draft has not all pages: the suite checks links of all
  cleanUrls: true,
  metaChunk: true,
  markdown: {
    anchor: { slugify: anchorOf },
    toc: { slugify: anchorOf },
    theme: { light: "github-light", dark: "github-dark" },
    languageAlias: { metal: "cpp" },
    attrs: { disable: true }, // no page has attributes in braces, and API pages have many other braces
    ...(isDraft ? { highlight: plainCode } : {}),
  },
  themeConfig: {
    nav: [
      { text: "Guide", link: "/start" },
      { text: "API", link: "/api/" },
      { text: "Gallery", link: "/gallery" },
    ],
    sidebar: {
      "/": guide,
      ...(isDraft ? { "/api/": [], "/api/classes/Tensor": api } : { "/api/": api }),
    },
    outline: { level: [2, 3] },
    search: {
      provider: "local",
      options: { _render: searchable, miniSearch: { searchOptions: { boost: { title: 8, titles: 2 } } } },
    },
    ...(repository ? { socialLinks: [{ icon: "github", link: repository }] } : {}),
    footer: { message: "MIT license" },
  },
});
