/** Commands whose output is not read to the end. */
import { expect, test } from "bun:test";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { repeats } from "../support/repeats.ts";

const folder = testFolder("pipes");

test.each(["train --help", "--help", "serve --help", "doctor"])(
  "orchard %s | true prints no stack trace",
  async (words) => {
    const file = folder.file("errors.txt");
    for (let round = 0; round < repeats({ usual: 1, all: 3 }); round++) {
      const command = `"${process.execPath}" src/cli/orchard.ts ${words} 2> "${file}" | true`;
      await Bun.spawn(["sh", "-c", command], { cwd: packageRoot, stdin: "ignore" }).exited;
      expect(await Bun.file(file).text()).not.toMatch(/EPIPE|\n\s+at /);
    }
  },
);
