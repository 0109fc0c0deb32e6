/** `ORCHARD_TRACE`: a file of trace events that is valid JSON at any time. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { OpenedTrace } from "../support/open-trace.ts";
import { bunWords } from "../support/program.ts";
import { child, hasMetal, newFolder, record, recordsIn } from "../support/recorded.ts";

interface TraceEvent {
  readonly ph: string;
  readonly name: string;
  readonly cat?: string;
  readonly id?: number;
  readonly ts: number;
  readonly dur: number;
  readonly pid: number;
  readonly tid: number;
  readonly args: Readonly<Record<string, unknown>>;
}

/** @throws if it is not JSON */
const parse = (path: string): TraceEvent[] => JSON.parse(readFileSync(path, "utf8")) as TraceEvent[];

/** The events of a program that runs to its end. */
function trace(program: string, settings: Record<string, string> = {}) {
  const folder = newFolder();
  const path = join(folder, "trace.json");
  const outcome = record(program, { ORCHARD_TRACE: path, ...settings }, folder);
  const events = parse(path);
  const spans = events.filter(({ ph }) => ph === "X");
  return { ...outcome, path, events, spans };
}

describe("the events of a trace", () => {
  test("an operation is a span with its backend, shapes and reason", () => {
    const { spans, lines } = trace(`orchard.matmul(zeros([2, 3]), zeros([3, 4]));`, {
      ORCHARD_BACKEND: "metal",
      ORCHARD_LIBRARY: "/nowhere/metal",
    });
    expect(lines).toHaveLength(1); // the only line says that metal is skipped
    expect(spans.map(({ name }) => name)).toEqual(["fill", "fill", "matmul"]);
    const { cat, args, ts, dur } = spans[2];
    expect(cat).toBe("cpu");
    expect(args).toEqual({
      backend: "cpu",
      reason: "metal: ORCHARD_LIBRARY names /nowhere/metal, which does not exist",
      inputs: ["float32[2, 3]", "float32[3, 4]"],
      outputs: ["float32[2, 4]"],
      copies: 0,
    });
    expect(dur).toBeGreaterThan(0);
    expect(ts).toBeGreaterThanOrEqual(spans[1].ts + spans[1].dur);
  });

  test("an operation of a backward pass names its forward", () => {
    const { spans } = trace("const [q, k, v] = operands(); backward(sum(flashAttention(q, k, v)));");
    const { args } = spans.find(({ name }) => name === "attentionBackward")!;
    expect(args["within"]).toBe("backward of FlashAttention");
  });

  test("an operation that fails is a span with the reason", () => {
    const { spans, exitCode } = trace(`try { orchard.zeros([2 ** 25, 2 ** 25]); } catch { console.log("refused"); }`);
    expect(exitCode).toBe(0);
    expect(spans.map(({ name, cat }) => `${name} ${cat}`)).toEqual(["fill cpu"]); // no other event has memory
    for (const { args } of spans) expect(String(args["failure"])).toContain(String(2 ** 52));
  });

  test("allocations are counters: bytes allocated so far, and live bytes", () => {
    const { events } = trace("const x = zeros([512, 512]); orchard.exp(x).dispose(); orchard.neg(tensor([1, 2]));");
    const values = (name: string, key: string) =>
      events.filter((event) => event.ph === "C" && event.name === name).map(({ args }) => Number(args[key]));
    const bytes = 2 ** 20;
    expect(values("allocated bytes so far", "host")).toEqual([bytes, 2 * bytes, 2 * bytes, 2 * bytes]);
    expect(values("allocated bytes so far", "script")).toEqual([0, 0, 8, 16]); // memory of an operand and a result
    const [one, two] = values("live bytes (host)", "live") as [number, number];
    expect([one >= bytes, two]).toEqual([true, 2 * one]);
    expect(values("peak bytes (host)", "peak")).toEqual([one, two]);
  });

  test("each event has the fields that the format requires for its phase", () => {
    const { events } = trace("const [q, k, v] = operands(); backward(sum(flashAttention(q, k, v)));");
    expect(events.filter(({ ph }) => ph === "M").map(({ name, args }) => [name, args["name"]])).toEqual([
      ["process_name", `orchard ${events[0].pid}`],
      ["thread_name", "main"],
    ]);
    for (const event of events) {
      expect([event.name, typeof event.pid, typeof event.tid]).toEqual([event.name, "number", "number"]);
      if (event.ph !== "M") expect(event.ts).toBeGreaterThan(0);
      if (event.ph === "X") expect(event.dur).toBeGreaterThanOrEqual(0);
    }
  });

  test.if(hasMetal)("a command buffer is a span in a separate row, which ends once it is seen to be done", () => {
    const { events, spans } = trace(
      `const host = tensor([1, 2]);
      withBackend("metal", () => {
        const x = orchard.exp(host);
        console.log(x.toArray().length);
        orchard.neg(x);
      });`,
    );
    const buffers = events.filter(({ cat }) => cat === "command buffer");
    expect(buffers.map(({ ph, id }) => `${ph} ${id}`)).toEqual(["b 1", "b 2", "e 1"]);
    expect(buffers.map(({ ts }) => ts)).toEqual(buffers.map(({ ts }) => ts).sort((a, b) => a - b));
    expect(spans.map(({ name, args }) => [name, args["tickets"]])).toEqual([
      ["exp", [1, 1]],
      ["neg", [2, 2]],
    ]);
    expect(spans[0].args["copies"]).toBe(1); // a copy to the device
  });

  test.if(hasMetal)("results that a failed command buffer lost are computed again, and shown", () => {
    const { spans, printed } = trace(
      `withBackend("metal", () => {
        const x = orchard.exp(tensor([0, 0]));
        metalContext().injectFault("command-buffer");
        console.log(JSON.stringify(x.toArray()));
      });`,
    );
    expect(printed).toBe("[1,1]");
    expect(spans.map(({ name, cat, args }) => [name, cat, args["reason"]])).toEqual([
      ["exp", "metal", "preferred"],
      ["exp", "cpu", "metal: the command buffer failed"],
    ]);
  });
});

const threeTimes = (call: string): string => `for (let i = 0; i < 3; i++) ${call};`;
/** Forward and backward on the cpu, an operation on metal, and allocations. */
const work = `
  const [q, k, v] = operands();
  backward(sum(flashAttention(q, k, v)));
  ${hasMetal ? `withBackend("metal", () => { ${threeTimes("orchard.exp(tensor([1, 2])).toArray()")} });` : ""}
`;

describe("a reader of the format accepts the trace", () => {
  test("Chrome's developer tools show the process, its thread and its operations, in their order", () => {
    const { path, spans, events } = trace(work);
    const program = join(import.meta.dir, "..", "support", "open-trace.ts");
    const { stdout, stderr } = Bun.spawnSync([...bunWords, program, path]);
    expect(stderr.toString()).toBe("");
    const { processes, tracks } = JSON.parse(stdout.toString()) as OpenedTrace;
    expect(processes).toEqual([`orchard ${events[0].pid}`]);
    expect(tracks).toEqual([{ name: "main", spans: spans.map(({ name }) => name) }]);
  });

  test("the file follows Perfetto's rules: known phases, spans nested or in sequence, a beginning for each end", () => {
    const { events, spans } = trace(work);
    expect([...new Set(events.map(({ ph }) => ph))].sort()).toEqual(
      hasMetal ? ["C", "M", "X", "b", "e"] : ["C", "M", "X"],
    );
    for (const { ph, ts, args } of events) {
      if (ph !== "M") expect(Number.isFinite(ts)).toBe(true);
      if (ph === "C") expect(Object.values(args).every((value) => Number.isFinite(value))).toBe(true);
    }
    const open: TraceEvent[] = []; // spans that may contain the next one
    for (const span of spans.toSorted((a, b) => a.ts - b.ts || b.dur - a.dur)) {
      while (open.length > 0 && open.at(-1)!.ts + open.at(-1)!.dur <= span.ts) open.pop();
      for (const around of open) expect(span.ts + span.dur).toBeLessThanOrEqual(around.ts + around.dur);
      open.push(span);
    }
    const begun = new Map<string, number>();
    for (const { ph, cat, id, name, ts } of events.filter(({ ph }) => ph === "b" || ph === "e")) {
      const key = `${cat} ${id} ${name}`;
      expect([key, ph, begun.has(key)]).toEqual([key, ph, ph === "e"]);
      if (ph === "b") begun.set(key, ts);
      else expect(ts).toBeGreaterThanOrEqual(begun.get(key)!);
      if (ph === "e") begun.delete(key);
    }
    expect([...begun.keys()]).toEqual([]); // the program has read every result
  });
});

describe("the trace is valid JSON", () => {
  const forever =
    "for (let call = 0; ; call++) { orchard.exp(tensor([1, 2])); if (call === 200) console.log('under way'); }";

  test("a trace is valid while the process runs, and after it is killed", async () => {
    const folder = newFolder();
    const path = join(folder, "trace.json");
    const { command, options } = child(forever, folder, { ORCHARD_TRACE: path });
    const running = Bun.spawn(command, options);
    await running.stdout.getReader().read();
    running.kill("SIGKILL");
    await running.exited;
    expect(running.signalCode).toBe("SIGKILL");
    expect(parse(path).filter(({ name }) => name === "exp").length).toBeGreaterThanOrEqual(200);
  });

  test.each([
    ["process.exit(3);", 3],
    ["throw new Error('early');", 1],
  ])("a trace is valid after %s", (end, code) => {
    const { spans, exitCode } = trace(`orchard.exp(tensor([1, 2])); ${end}`);
    expect([exitCode, spans.map(({ name }) => name)]).toEqual([code, ["exp"]]);
  });

  test("a trace is valid with any names, reasons and messages", () => {
    const { spans } = trace("orchard.exp(tensor([1, 2]));", {
      ORCHARD_BACKEND: "metal",
      ORCHARD_LIBRARY: '/nowhere/"quoted"\\\n',
    });
    expect(String(spans[0].args["reason"])).toContain('"quoted"\\');
  });
});

describe("the path of a trace is chosen by a variable", () => {
  test("%p stands for the process id", () => {
    const folder = newFolder();
    record("orchard.exp(tensor([1, 2]));", { ORCHARD_TRACE: join(folder, "trace-%p.json") }, folder);
    const [name] = recordsIn(folder);
    const [{ pid }] = parse(join(folder, name)) as [TraceEvent];
    expect(name).toBe(`trace-${pid}.json`);
  });

  test("an existing file is replaced", () => {
    const folder = newFolder();
    const path = join(folder, "trace.json");
    writeFileSync(path, "x".repeat(1_000_000));
    record("orchard.exp(tensor([1, 2]));", { ORCHARD_TRACE: path }, folder);
    expect(parse(path).some(({ name }) => name === "exp")).toBe(true);
  });

  test("a second process with the same path replaces the file; the first writes to its unlinked file", async () => {
    const folder = newFolder();
    const path = join(folder, "trace.json");
    const { command, options } = child(
      "orchard.exp(tensor([1, 2])); console.log('begun'); await Bun.stdin.text();" +
        "for (let call = 0; call < 500; call++) orchard.exp(tensor([1, 2]));",
      folder,
      { ORCHARD_TRACE: path },
    );
    const first = Bun.spawn(command, { ...options, stdin: "pipe" });
    await first.stdout.getReader().read();
    record("orchard.neg(tensor([1, 2]));", { ORCHARD_TRACE: path }, folder);
    first.stdin.end();
    await first.exited;
    expect(
      parse(path)
        .filter(({ ph }) => ph === "X")
        .map(({ name }) => name),
    ).toEqual(["neg"]);
  });

  test("a worker writes a separate file", () => {
    const folder = newFolder();
    const program = `
      if (Bun.isMainThread) {
        const { promise, resolve } = Promise.withResolvers();
        const worker = new Worker(process.env.WORKER);
        worker.onmessage = resolve;
        await promise;
        orchard.neg(tensor([1, 2]));
        process.exit(0);
      }`;
    const worker = join(folder, "worker.ts");
    const index = JSON.stringify(join(import.meta.dir, "..", "..", "src", "index.ts"));
    writeFileSync(worker, `import { exp, tensor } from ${index}; exp(tensor([1, 2])); postMessage("done");`);
    const path = join(folder, "trace.json");
    const { exitCode } = record(program, { ORCHARD_TRACE: path, WORKER: worker }, folder);
    const names = recordsIn(folder).sort();
    expect([exitCode, names]).toEqual([0, ["trace.json", expect.stringMatching(/^trace\.thread-\d+\.json$/) as never]]);
    const operations = names.map((name) =>
      parse(join(folder, name))
        .filter(({ ph }) => ph === "X")
        .map((event) => event.name),
    );
    expect(operations).toEqual([["neg"], ["exp"]]);
  });
});

describe("a trace that can't be written causes one warning, and work continues", () => {
  const program = "console.log(orchard.neg(orchard.neg(tensor([1, 2]))).toArray());";

  test("a missing folder causes one warning", () => {
    const { lines, printed } = record(program, { ORCHARD_TRACE: "/nowhere/trace.json" });
    expect([printed, lines]).toEqual([
      "[ 1, 2 ]",
      [
        expect.stringMatching(
          /^\[orchard\] \/nowhere\/trace\.json can't be written, so nothing more is recorded there: ENOENT/,
        ),
      ],
    ]);
  });

  test("the path of a folder causes one warning, and the folder stays", () => {
    const folder = newFolder();
    mkdirSync(join(folder, "trace.json"));
    const { lines, printed } = record(program, { ORCHARD_TRACE: join(folder, "trace.json") }, folder);
    expect([printed, lines.length]).toEqual(["[ 1, 2 ]", 1]);
    expect(readdirSync(folder)).toContain("trace.json");
  });

  test("the path of a device causes one warning, and the device stays", () => {
    const folder = newFolder();
    const path = join(folder, "trace.json");
    symlinkSync("/dev/null", path);
    const { lines, printed } = record(program, { ORCHARD_TRACE: path }, folder);
    expect([printed, lines]).toEqual(["[ 1, 2 ]", [expect.stringContaining("it exists and is not a file")]]);
    expect(readlinkSync(path)).toBe("/dev/null");
  });

  test("when the disk is full, the written part is valid JSON", () => {
    const folder = newFolder();
    const path = join(folder, "trace.json");
    const { command, options } = child(
      `for (let call = 0; call < 100; call++) orchard.exp(tensor([1, 2])); ${program}`,
      folder,
      {
        ORCHARD_TRACE: path,
      },
    );
    // A limit on file sizes simulates a full disk: a write beyond it is cut, and the next one fails.
    const limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "sh", ...command];
    const { stdout, stderr } = Bun.spawnSync(limited, options);
    expect(stdout.toString().trim()).toBe("[ 1, 2 ]");
    expect(stderr.toString().trim()).toMatch(/^\[orchard\] .*trace\.json can't be written, .*$/);
    expect(parse(path).length).toBeGreaterThan(5);
  });
});
