import { describe, expect, test } from "bun:test";
import {
  aptConfiguration,
  aptOptions,
  chooseMirror,
  parseProgress,
  parseTargets,
  reason,
  sourcesList,
} from "../../src/cli/toolchain/apt.ts";

const targets = parseTargets(`https://third.example/apt cloud main
http://mirror.example/debian/ bookworm main
http://mirror.example/debian/ bookworm-updates main
http://mirror.example/debian-security/ bookworm-security main

http://mirror.example/debian/ bookworm contrib
`);

describe("the sources of apt are read", () => {
  test("each line of indextargets is a target", () => {
    expect(targets).toHaveLength(5);
    expect(targets[1]).toEqual({ uri: "http://mirror.example/debian/", suite: "bookworm", component: "main" });
  });

  test("the mirror matches the machine's release, not its security archive or a third party", () => {
    expect(chooseMirror(targets, "bookworm")).toBe("http://mirror.example/debian/");
    expect(chooseMirror(targets, "trixie")).toBeUndefined();
    expect(chooseMirror([{ uri: "http://m.example/", suite: "stable", component: "main" }], "trixie")).toBe(
      "http://m.example/",
    );
  });

  test("a private list has each release once, with the keyring if there is one", () => {
    expect(sourcesList("http://m.example/", ["trixie", "trixie"], "/keys/debian.gpg")).toBe(
      "deb [signed-by=/keys/debian.gpg] http://m.example/ trixie main\n",
    );
    expect(sourcesList("http://m.example/", ["trixie", "bookworm"], "").split("\n")).toHaveLength(3);
  });
});

describe("the options of apt use private folders", () => {
  const options = aptOptions("/private/place");

  test("every folder that apt writes to is the private one", () => {
    for (const name of ["Dir::State", "Dir::State::status", "Dir::Cache", "Dir::Etc::sourcelist"])
      expect(options.find((option) => option.startsWith(`${name}=`))).toStartWith(`${name}=/private/place/`);
  });

  test("each option is passed by -o, and the machine's lists are not read", () => {
    expect(options.filter((_, index) => index % 2 === 0).every((word) => word === "-o")).toBe(true);
    expect(options).toContain("Dir::Etc::sourceparts=-");
  });

  test("the configuration includes an earlier one, and removes hooks that change the system", () => {
    expect(aptConfiguration("/etc/own.conf")).toBe('#include "/etc/own.conf";\n#clear APT::Update;\n');
    expect(aptConfiguration(undefined)).toBe("#clear APT::Update;\n");
  });
});

describe("progress of apt is read from its output", () => {
  test("progress is read from its status lines alone", () => {
    expect(parseProgress("dlstatus:3:41.2500:Retrieving file 3 of 46")).toBe(41.25);
    expect(parseProgress("Get:1 http://mirror.example trixie/main swiftlang")).toBeUndefined();
  });

  test("the usual causes of a failure are explained", () => {
    expect(reason("E: Failed to fetch x  Could not resolve 'mirror.example'")).toStartWith(
      "the network or the mirror does not answer",
    );
    expect(reason("Hit:1\nE: You don't have enough free space: No space left on device")).toStartWith(
      "the disk is full",
    );
    expect(reason("Reading…\nE: Unable to locate package swiftlang")).toBe("E: Unable to locate package swiftlang");
  });
});
