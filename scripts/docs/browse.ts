/** Opens the site's pages in a browser with the screens of a desktop and a phone, light and dark. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "puppeteer-core";
import { launchChromium } from "../../test/support/chromium.ts";
import { Failure } from "../failure.ts";
import { serveFolder } from "./serve.ts";

const screens = [
  { name: "desktop", width: 1280, height: 900 },
  { name: "phone", width: 390, height: 844 },
] as const;
const themes = ["light", "dark"] as const;
const views = screens.flatMap((screen) => themes.map((theme) => ({ screen, theme })));

/** The API has many similar pages; a few of each kind are enough. */
const apiPages = [
  "api/",
  "api/functions/matmul",
  "api/functions/flashAttention",
  "api/classes/Tensor",
  "api/orchard-metal/namespaces/nn/",
];

/**
 * Opens each page on each screen.
 *
 * @param pictures the folder for screenshots, if any
 * @throws {Failure} with the pages that scroll sideways, write an error to the console, or miss a file
 */
export async function checkPages(folder: string, base: string, pictures?: string): Promise<void> {
  if (pictures) mkdirSync(pictures, { recursive: true });
  const server = serveFolder(folder, base);
  const browser = await launchChromium();
  try {
    const names = pageNames(folder);
    const problems: string[] = [];
    for (const name of names) {
      const visits = views.map((view) => ({ ...view, address: server.url + name, name, pictures }));
      problems.push(...(await Promise.all(visits.map((visit) => problemsOf(browser, visit)))).flat());
    }
    if (problems.length > 0) throw new Failure(`Pages of the site have problems:\n${problems.join("\n")}`);
    console.log(`${names.length} pages, on ${screens.length} screens, light and dark: no problem`);
  } finally {
    await browser.close();
    await server.stop(true);
  }
}

function pageNames(folder: string): string[] {
  const pageFiles = ["*.html", "decisions/*.html"]
    .flatMap((glob) => [...new Bun.Glob(glob).scanSync({ cwd: folder })])
    .sort();
  const names = pageFiles.filter((name) => name !== "404.html").map((name) => name.replace(/(?:index)?\.html$/, ""));
  const there = new Set(new Bun.Glob("api/**/*.html").scanSync({ cwd: folder }));
  return [...names, ...apiPages.filter((name) => there.has(`${name}${name.endsWith("/") ? "index" : ""}.html`))];
}

interface Visit {
  readonly address: string;
  readonly name: string;
  readonly screen: (typeof screens)[number];
  readonly theme: (typeof themes)[number];
  readonly pictures: string | undefined;
}

async function problemsOf(browser: Browser, { address, name, screen, theme, pictures }: Visit): Promise<string[]> {
  const problems: string[] = [];
  const page = await browser.newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on(
    "response",
    (response) => response.status() >= 400 && problems.push(`${response.status()} ${response.url()}`),
  );
  const title = `${name || "index"}.${screen.name}.${theme}`;
  try {
    await page.setViewport({ width: screen.width, height: screen.height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    await page.goto(address, { waitUntil: "networkidle0" });
    const wide = (await page.evaluate(widest)) as string | null;
    if (wide) problems.push(`it scrolls sideways: ${wide}`);
    const isDark = await page.evaluate("document.documentElement.classList.contains('dark')");
    if (isDark !== (theme === "dark")) problems.push("it does not follow the theme");
    if (pictures)
      await page.screenshot({ path: join(pictures, `${title.replaceAll("/", "-")}.png`) as `${string}.png` });
  } finally {
    await page.close();
  }
  return problems.map((problem) => `${title}: ${problem}`);
}

/**
 * Returns the outermost element that is wider than the screen, if the page scrolls sideways. The function's text runs
 * in the page.
 */
const widest = `(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return null;
  const sticksOut = (element) => element.getBoundingClientRect().right > width + 1;
  const wide = [...document.querySelectorAll("body *")].find(sticksOut);
  return wide ? wide.tagName + "." + wide.className + ": " + wide.textContent.trim().slice(0, 60) : "an element";
})()`;
