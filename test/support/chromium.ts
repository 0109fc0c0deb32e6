/** A real browser: the machine's, or on Linux the Chromium of an npm package, which needs no system packages. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import puppeteer, { type Browser, type Page } from "puppeteer-core";
import { restoreVariables } from "./environment.ts";

const installed = [
  process.env["CHROMIUM_PATH"],
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/usr/bin/chromium",
  "/usr/bin/google-chrome",
];

interface Program {
  readonly executablePath: string;
  readonly args: readonly string[];
  /** Installs libraries that a machine may lack. Returns their folder. */
  readonly libraries?: () => Promise<string>;
}

async function findProgram(): Promise<Program> {
  const found = installed.find((path) => path && existsSync(path));
  if (found) return { executablePath: found, args: ["--no-sandbox"] };
  const { default: chromium, inflate } = await import("@sparticuz/chromium");
  const archive = join(dirname(Bun.resolveSync("@sparticuz/chromium", import.meta.dir)), "..", "bin", "al2023.tar.br");
  const libraries = async () => join(await inflate(archive), "lib");
  return { executablePath: await chromium.executablePath(), args: chromium.args, libraries };
}

/** Chromium rejects the POSIX locale, the default of a machine without a locale. */
const locale = { LANG: "en_US.UTF-8", LC_ALL: "en_US.UTF-8" };

/** A limit on the time of a page, the browser's start and its protocol, for cases that hang. */
const TIMEOUT = 300_000;

export async function launchChromium(): Promise<Browser> {
  const before = { ...process.env };
  try {
    return await launch();
  } finally {
    restoreVariables(before); // the npm package sets some variables
  }
}

/** A page whose waits end after {@link TIMEOUT}. */
export async function newPage(browser: Browser): Promise<Page> {
  const page = await browser.newPage();
  page.setDefaultTimeout(TIMEOUT);
  return page;
}

async function launch(): Promise<Browser> {
  const { executablePath, args, libraries } = await findProgram();
  const start = (more: Record<string, string> = {}) =>
    puppeteer.launch({
      timeout: TIMEOUT,
      protocolTimeout: TIMEOUT,
      executablePath,
      args: [...args, "--lang=en-US"],
      env: { ...process.env, ...locale, ...more },
      headless: "shell",
    });
  try {
    return await start();
  } catch (error) {
    if (!libraries || !String(error).includes("shared libraries")) throw error;
    return start({ LD_LIBRARY_PATH: await libraries() });
  }
}
