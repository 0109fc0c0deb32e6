/** `bun run verify:apple`: its checks cover the assumptions of docs/apple.md, and it reports what it saw. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { checks, describeCheck, probes } from "../../scripts/verify/checks.ts";
import { together } from "../../scripts/verify/outcome.ts";
import { assumptionsOf, byHand, readPage, risks } from "../../scripts/verify/page.ts";
import {
  expectCompiles,
  expectNumbers,
  expectRefused,
  knowsVersion,
  NotChecked,
  Refuted,
} from "../../scripts/verify/probe.ts";
import { formatReport, softwareNotice } from "../../scripts/verify/report.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { takeFindings } from "../support/leftovers.ts";

afterAll(() => void takeFindings()); // probes test behavior that kernels must not rely on, so the checker reports them

const page = readPage();
const assumptions = assumptionsOf(page);
const identifiers = assumptions.map(({ identifier }) => identifier);

describe("docs/apple.md lists each assumption once", () => {
  test("the page lists each assumption once, and no other row", () => {
    expect(identifiers.length).toBeGreaterThan(80);
    expect(new Set(identifiers).size).toBe(identifiers.length);
    expect(identifiers.filter((own) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(own))).toEqual([]);
    const rows = page.split("\n").filter((line) => /^\| (?!identifier|---)/.test(line));
    expect(rows.length).toBe(identifiers.length);
  });

  test("the page is in the order of the risks", () => {
    const order = assumptions.map(({ risk }) => risks.indexOf(risk));
    expect(order).toEqual(order.toSorted());
    expect(new Set(order).size).toBe(risks.length);
  });

  test("the page states for each assumption what checks it, or why nothing does", () => {
    const wrong = assumptions.filter(({ identifier, checkedBy }) => {
      const own = checks[identifier];
      if (own) return checkedBy !== own.map(describeCheck).join(", ");
      return !checkedBy.startsWith(byHand) || checkedBy.length < byHand.length + 10;
    });
    expect(wrong).toEqual([]);
  });

  test("the page states for each assumption what goes wrong without it", () => {
    expect(assumptions.filter(({ text, consequence }) => text.length < 20 || consequence.length < 6)).toEqual([]);
  });
});

describe("each check tests an assumption of the page", () => {
  test("each check belongs to an assumption of the page", () => {
    expect(Object.keys(checks).filter((identifier) => !identifiers.includes(identifier))).toEqual([]);
  });

  test("checks name existing files, programs, probes and Swift tests", () => {
    const swift = readdirSync(join(packageRoot, "swift/Tests/OrchardMetalTests"));
    const sources = Object.fromEntries(
      swift.map((file) => [
        basename(file, ".swift"),
        readFileSync(join(packageRoot, "swift/Tests/OrchardMetalTests", file), "utf8"),
      ]),
    );
    const missing = Object.entries(checks).flatMap(([identifier, own]) =>
      own.flatMap((check) => {
        if (check.kind === "tests") return check.files.filter((file) => !existsSync(join(packageRoot, file)));
        if (check.kind === "program") return existsSync(programOf(identifier)) ? [] : [programOf(identifier)];
        if (check.kind === "probe") return probes[identifier] ? [] : [identifier];
        if (check.kind !== "swift") return [];
        return check.names.filter((name) => {
          const [type, method] = name.split("/");
          return !sources[type] || (method !== undefined && !sources[type].includes(`func ${method}()`));
        });
      }),
    );
    expect(missing).toEqual([]);
  });

  const folder = join(packageRoot, "scripts", "verify", "programs");
  const programOf = (identifier: string) => join(folder, `${identifier}.swift`);

  test("checks use every program and every probe", () => {
    const used = (kind: string) =>
      Object.keys(checks).filter((identifier) => checks[identifier].some((check) => check.kind === kind));
    expect(readdirSync(folder).sort()).toEqual(
      used("program")
        .sort()
        .map((own) => `${own}.swift`),
    );
    expect(used("probe").sort()).toEqual(Object.keys(probes).sort());
  });
});

describe("a probe of Apple's hardware holds on the software device", () => {
  /** Probes that the software device may be unable to decide: they concern other machines. */
  const others = ["command-line-tools", "hosted-runner"];

  test.each(Object.entries(probes))("the probe of %s holds on the software device", (identifier, probe) => {
    // On a Mac, verify:apple reports the outcome.
    if (!metalContext().isSoftware) return expect(process.platform).toBe("darwin");
    try {
      expect(probe().length).toBeGreaterThan(10);
    } catch (error) {
      if (!others.includes(identifier) || !(error instanceof NotChecked)) throw error;
    }
  });

  test("a device that computes differently refutes a probe", () => {
    const context = metalContext();
    if (!context.isSoftware) return expect(process.platform).toBe("darwin");
    context.configure("fast", "1");
    try {
      for (const identifier of ["precise-rounding", "safe-tanh"]) expect(probes[identifier]).toThrow(Refuted);
    } finally {
      context.configure("fast", "auto");
    }
  });

  const legal = "kernel void k(device float *y [[buffer(0)]]) { y[0] = 1; }";

  test("a probe reports what was rejected, what compiles, and what differs", () => {
    expect(expectCompiles({ "a kernel": legal })).toBe("accepted: a kernel");
    expect(() => expectRefused({ "a kernel": legal })).toThrow(new Refuted("a kernel: compiles"));
    expect(() => expectCompiles({ nonsense: "kernel void k() { nothing; }" })).toThrow(/^nonsense: refused: .*error/);
    expect(() => expectNumbers([1, 3], [1, 2], (index) => `x${index}`)).toThrow(new Refuted("x1: expected 2, got 3"));
    expect([knowsVersion("3.1"), knowsVersion("9.9")]).toEqual([true, false]);
  });
});

test("an assumption holds if each of its checks holds", () => {
  const [holds, fails, unknown] = (["holds", "fails", "unknown"] as const).map((state) => ({ state, evidence: state }));
  expect(together([holds, holds]).state).toBe("holds");
  expect(together([holds, unknown]).state).toBe("unknown");
  expect(together([unknown, fails, holds])).toEqual({ state: "fails", evidence: "unknown; fails; holds" });
});

describe("the report confirms and refutes assumptions", () => {
  const device = { ...metalContext().deviceInfo(), name: "Apple M1", families: ["apple7"] };
  const verified = (["holds", "fails", "unknown"] as const).map((state, index) => ({
    assumption: assumptions[index],
    outcome: { state, evidence: `a | b\nof ${state}` },
  }));
  const reportOn = (isSoftware: boolean) =>
    formatReport({ device: { ...device, isSoftware }, versions: ["3.1"], facts: [["GPU", "Apple M1"]] }, [], verified);

  test("a Mac's report confirms or refutes each assumption", () => {
    const text = reportOn(false);
    expect(text).toContain("- GPU: Apple M1\n");
    expect(text).toContain(`| \`${identifiers[0]}\` | high | confirmed | a \\| b of holds |`);
    expect(text).toContain("1 confirmed, 1 refuted, 1 not checked");
    expect(text).not.toContain(softwareNotice);
  });

  test("the report of the software device confirms nothing, and says so", () => {
    const text = reportOn(true);
    expect(text).toContain(softwareNotice);
    expect(text).not.toMatch(/confirmed|refuted/);
  });
});

describe("bun run verify:apple runs the checks", () => {
  const { path: report } = testFolder("verify");
  const verify = (...words: string[]) => {
    const { stdout, stderr, exitCode } = Bun.spawnSync(
      [process.execPath, "scripts/launch.ts", "verify:apple", ...words],
      {
        cwd: packageRoot,
        env: { ...process.env, ORCHARD_REPORT: report },
      },
    );
    return { out: stdout.toString(), err: stderr.toString(), exitCode };
  };

  test("the command checks the named ones, compiles kernels at each version, runs tests, and writes a report", () => {
    const words = ["denormals", "progress", "dropped-buffers", "kernels/softmax", "test/scripts/counts.test.ts"];
    const { out, exitCode } = verify(...words);
    const text = readFileSync(join(report, "verify-apple.md"), "utf8");
    expect(out).toContain(text);
    expect(exitCode).toBe(0);
    for (const fact of ["Orchard", "machine", "system", "GPU", "Metal"])
      expect(text).toMatch(new RegExp(`^- ${fact}: \\S`, "m"));
    expect(text).toMatch(/^\| kernels \| passed \| [1-9]\d* files at Metal 3\.1, .*: 0 failures \|$/m);
    expect(text).toMatch(/^\| suite \| passed \| [1-9]\d* passed, 0 failed \|$/m);
    expect(text).toMatch(/^\| `denormals` \| high \| \S.*denormals of half are kept/m);
    expect(text).toMatch(/^\| `progress` \| low \| not checked \| no run on a GPU would refute it/m);
    expect(text).toMatch(/^\| `dropped-buffers` \| medium \| \S.*: 1 test passed \|$/m);
  });

  test("--list prints each assumption with its risk and its check", () => {
    const lines = verify("--list").out.trim().split("\n");
    expect(lines.map((line) => line.split(/\s+/)[0])).toEqual(identifiers);
  });

  test("the command rejects unknown arguments", () => {
    const { err, exitCode } = verify("denormal", "kernels");
    expect(err).toContain('got "denormal". --list prints the identifiers.');
    expect(exitCode).toBe(1);
  });
});
