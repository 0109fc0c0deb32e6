/** A real browser: the machine's, or on Linux the Chromium of an npm package, which needs nothing installed. */
import { existsSync } from "node:fs";
import puppeteer, { type Browser } from "puppeteer-core";

const installed = [
  process.env["CHROMIUM_PATH"],
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/usr/bin/chromium",
  "/usr/bin/google-chrome",
];

async function executable(): Promise<{ executablePath: string; args: string[] }> {
  const found = installed.find((path) => path && existsSync(path));
  if (found) return { executablePath: found, args: ["--no-sandbox"] };
  const { default: chromium } = await import("@sparticuz/chromium");
  return { executablePath: await chromium.executablePath(), args: chromium.args };
}

/** Chromium refuses a locale of POSIX, which is what a machine without one has. */
const locale = { LANG: "en_US.UTF-8", LC_ALL: "en_US.UTF-8" };

export async function launchChromium(): Promise<Browser> {
  const { executablePath, args } = await executable();
  return puppeteer.launch({
    executablePath,
    args: [...args, "--lang=en-US"],
    env: { ...process.env, ...locale },
    headless: "shell",
  });
}
