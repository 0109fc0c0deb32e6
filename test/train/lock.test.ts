/** The lock of a folder: a second process is rejected until the first process has ended. */
import { afterAll, afterEach, beforeAll, describe, expect, type Mock, spyOn, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileError } from "../../src/core/errors.ts";
import { forgetWarnings } from "../../src/core/warn.ts";
import { LOCK_FILE, type LockSystem, lockFolder } from "../../src/io/lock.ts";
import { makeRunFolder } from "../../src/train/folder.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const { path: folder } = testFolder("lock");
let folders = 0;

describe("the lock of a folder excludes other processes", () => {
  const made = () => {
    const path = join(folder, `${folders++}`);
    mkdirSync(path);
    return path;
  };

  test("a folder is locked once, until it is released; the file is gone then", () => {
    const path = made();
    const lock = lockFolder("test", path);
    expect(readdirSync(path)).toEqual([LOCK_FILE]);
    const refused = () => lockFolder("test", path);
    expect(refused).toThrow(FileError);
    expect(refused).toThrow(`[test] ${path}: process ${process.pid} is using it`);
    lock[Symbol.dispose]();
    lock[Symbol.dispose]();
    expect(readdirSync(path)).toEqual([]);
    lockFolder("test", path)[Symbol.dispose]();
  });

  test.each(["", "{", '{"pid":1,"host":"elsewhere"}', "x".repeat(10)])(
    "a folder with a lock file of a process that crashed, %p, is free",
    (content) => {
      const path = made();
      writeFileSync(join(path, LOCK_FILE), content);
      using _ = lockFolder("test", path);
      expect(() => lockFolder("test", path)).toThrow(`process ${process.pid} is using it`);
    },
  );

  test("a lock file that was removed behind the holder's back is not removed by that holder", () => {
    const path = made();
    const first = lockFolder("test", path);
    Bun.spawnSync(["rm", join(path, LOCK_FILE)]);
    using _ = lockFolder("test", path);
    first[Symbol.dispose]();
    expect(() => lockFolder("test", path)).toThrow("is using it");
  });

  test("a lock file that can't be written is an error that says why", () => {
    const path = made();
    mkdirSync(join(path, LOCK_FILE));
    expect(() => lockFolder("test", path)).toThrow("expected a file, got a folder (EISDIR)");
  });

  describe("the lock warns on some file systems", () => {
    let warned: Mock<typeof console.warn>;
    beforeAll(() => {
      warned = spyOn(console, "warn").mockImplementation(() => undefined);
    });
    afterAll(() => warned.mockRestore());
    afterEach(() => {
      warned.mockClear();
      forgetWarnings();
    });
    const warningsOf = (system: Partial<LockSystem>) => {
      using _ = lockFolder("test", made(), { tryLock: () => "locked", kindOf: () => undefined, ...system });
      return warned.mock.calls.flat().join();
    };

    test.each([
      ["NFS: a process on another machine may ignore its lock", { kindOf: () => 0x6969 }],
      ["SMB: a process on another machine may ignore its lock", { kindOf: () => 0xff534d42 }],
      ["FUSE: a process on another machine may ignore its lock", { kindOf: () => 0x65735546 }],
      [
        "a file system without locks: a second process may use it at the same time",
        { tryLock: () => "unsupported" as const },
      ],
    ])("a warning is printed on a file system such as %s", (sentence, system: Partial<LockSystem>) => {
      expect(warningsOf(system)).toEndWith(`is on ${sentence}`);
    });

    test("no warning is printed on a file system of this machine", () => {
      for (const kind of [0xef53, 0x9123683e, undefined]) expect(warningsOf({ kindOf: () => kind })).toBe("");
    });
  });

  test("two of many processes never lock a folder at once", async () => {
    const path = made();
    const program = `
      import { lockFolder } from "./src/io/lock.ts";
      import { existsSync, rmSync, writeFileSync } from "node:fs";
      const mark = ${JSON.stringify(join(path, "mark"))};
      writeFileSync(${JSON.stringify(`${path}-`)} + process.argv[1], "");
      while (${JSON.stringify(["0", "1", "2", "3"].map((name) => `${path}-${name}`))}.some((one) => !existsSync(one)));
      let [held, broken] = [0, 0];
      while (held < 100) {
        try {
          using lock = lockFolder("test", ${JSON.stringify(path)});
          held++;
          try { writeFileSync(mark, "", { flag: "wx" }); } catch { broken++; }
          rmSync(mark, { force: true });
        } catch (error) { if (error.code !== "locked") throw error; }
      }
      console.log(JSON.stringify([held, broken]));`;
    const children = Array.from({ length: 4 }, (_, number) =>
      Bun.spawn([...bunWords, "-e", program, `${number}`], { stdout: "pipe", stderr: "inherit" }),
    );
    const counts = await Promise.all(children.map(async ({ stdout }) => JSON.parse(await stdout.text()) as number[]));
    expect(counts).toEqual(Array.from({ length: 4 }, () => [100, 0]));
  });
});

test("runs that start within the same second use separate folders", () => {
  const before = process.cwd();
  process.chdir(folder);
  try {
    const now = new Date("2026-01-31T23:59:59.999Z");
    const runs = [1, 2, 3].map(() => makeRunFolder(undefined, now));
    const names = ["2026-01-31-235959", "2026-01-31-235959-2", "2026-01-31-235959-3"];
    expect(runs.map(({ path }) => path)).toEqual(names.map((name) => join(process.cwd(), "runs", name)));
    for (const run of runs) run[Symbol.dispose]();
  } finally {
    process.chdir(before);
  }
});
