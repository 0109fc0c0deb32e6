/** Runs in this process: their events, that they are deterministic and resume bit-identically, and how they end. */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { noGrad } from "../../src/autograd/modes.ts";
import { codepaths } from "../../src/backend/codepaths.ts";
import { getBackend, setBackend } from "../../src/backend/policy.ts";
import { checkpointName } from "../../src/io/checkpoint/format.ts";
import { fill_ } from "../../src/ops/copy/inplace.ts";
import { add, mul, sign } from "../../src/ops/elementwise/arithmetic.ts";
import { sqrt } from "../../src/ops/elementwise/power.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import type { Outcome, RunEvent, StepEvent } from "../../src/train/events.ts";
import { NotFiniteError } from "../../src/train/not_finite.ts";
import { runSession } from "../../src/train/run.ts";
import { loadRun, Session } from "../../src/train/session.ts";
import { presets, type Settings } from "../../src/train/settings.ts";
import { testFolder } from "../support/folder.ts";

const { path: folder } = testFolder("run");
const text = join(folder, "text.ts");
const before = getBackend();
beforeAll(async () => {
  setBackend("cpu");
  const lines = Array.from({ length: 400 }, (_, k) => `export const value${k}: number = ${(k * 7919) % 1000};\n`);
  await Bun.write(text, lines.join(""));
});
afterAll(() => setBackend(before));

const small: Settings = {
  ...presets.tiny,
  data: [text],
  width: 16,
  context: 16,
  steps: 12,
  warmup: 2,
  dropout: 0.1,
  learningRate: 3e-3,
  evaluateEvery: 4,
  saveEvery: 4,
  sampleEvery: 6,
  sampleTokens: 5,
  keep: 2,
};

interface Told {
  readonly outcome: Outcome;
  readonly events: readonly RunEvent[];
  readonly losses: readonly number[];
}

const stepsIn = (events: readonly RunEvent[]) => events.filter((event): event is StepEvent => event.kind === "step");

let runs = 0;
const newFolder = () => join(folder, `checkpoints-${runs++}`);

/** Runs a session; `during` gets every event as it happens. */
async function run(
  session: Session,
  checkpoints = newFolder(),
  during?: (event: RunEvent) => void,
  signal?: AbortSignal,
): Promise<Told> {
  const events: RunEvent[] = [];
  const on = (event: RunEvent) => {
    events.push(event);
    during?.(event);
  };
  const outcome = await runSession(session, checkpoints, { on }, signal);
  return { outcome, events, losses: stepsIn(events).map(({ loss }) => loss) };
}

describe("a run with patience", () => {
  /** Steps that change no weight: no evaluation is better than the first. */
  const still: Settings = {
    ...small,
    learningRate: 1e-30,
    finalLearningRate: 0,
    weightDecay: 0,
    sampleEvery: 0,
    sampleTokens: 1,
    steps: 40,
    evaluateEvery: 2,
    saveEvery: 2,
    keep: 20,
    patience: 3,
  };

  test("a run ends after `patience` evaluations without a lower loss, and resumes to the same end", async () => {
    const checkpoints = newFolder();
    const { outcome, events } = await run(await Session.start(still), checkpoints);
    expect(outcome).toMatchObject({ reason: "finished", step: 8 });
    const notes = events.flatMap((event) => (event.kind === "note" ? event.text : []));
    expect(notes).toEqual([expect.stringMatching(/^stopped early: the last 3 evaluations had no lower loss than \d/)]);
    const checkpoint = await loadRun(join(checkpoints, checkpointName(6)));
    const resumed = await run(await Session.resume(checkpoint, checkpoint.extra.settings));
    expect(resumed.outcome).toMatchObject({ reason: "finished", step: 8, heldOutLoss: outcome.heldOutLoss });
  });

  test("a run with a patience of 0 runs all steps", async () => {
    const { outcome } = await run(await Session.start({ ...still, steps: 12, patience: 0 }));
    expect(outcome).toMatchObject({ reason: "finished", step: 12 });
  });
});

describe("a run emits its events when due", () => {
  test("a run emits steps, evaluations, checkpoints, samples and its end when they are due", async () => {
    const checkpoints = newFolder();
    const { outcome, events } = await run(await Session.start(small), checkpoints);
    const at = (kind: RunEvent["kind"]) => events.filter((event) => event.kind === kind).map(({ step }) => step);
    expect(at("start")).toEqual([0]);
    expect(at("step")).toEqual(Array.from({ length: 12 }, (_, k) => k + 1));
    expect([at("evaluation"), at("checkpoint")]).toEqual([
      [4, 8, 12],
      [4, 8, 12],
    ]);
    expect(at("sample")).toEqual([6, 12]);
    expect(events.at(-1)).toEqual({ kind: "end", step: 12, reason: "finished" });
    expect(outcome).toMatchObject({ reason: "finished", step: 12, unsaved: undefined });
    expect(outcome.checkpoint).toBe(join(checkpoints, checkpointName(12)));
    expect(existsSync(join(checkpoints, checkpointName(8)))).toBe(true);
    expect(existsSync(join(checkpoints, checkpointName(4)))).toBe(false); // two checkpoints are kept
  });

  test("a run learns: in 60 steps the loss falls from ln 256 to less than half", async () => {
    const settings = { ...small, steps: 60, dropout: 0, learningRate: 1e-2, evaluateEvery: 0, saveEvery: 0 };
    const { losses, outcome } = await run(await Session.start({ ...settings, sampleEvery: 0 }));
    expect(losses[0]).toBeCloseTo(Math.log(256), 0);
    expect(losses.at(-1)).toBeLessThan(losses[0] / 2);
    expect(outcome.heldOutLoss).toBeLessThan(losses[0] / 2);
  });

  test("a run has the same losses with the same seed, and different ones with another seed", async () => {
    const [first, again] = [await run(await Session.start(small)), await run(await Session.start(small))];
    expect(again.losses).toEqual(first.losses);
    expect((await run(await Session.start({ ...small, seed: 2 }))).losses).not.toEqual(first.losses);
  });

  test("the learning rate warms up, then follows half a cosine down to the last one", async () => {
    const { events } = await run(await Session.start(small));
    const rates = stepsIn(events).map(({ learningRate }) => learningRate);
    expect(rates[0]).toBeCloseTo(3e-3 / 3, 10);
    expect(Math.max(...rates)).toBeCloseTo(3e-3, 10);
    expect(rates.slice(2)).toEqual(rates.slice(2).toSorted((a, b) => b - a));
  });

  test("a run clips gradients of a large norm, unless clipping is off", async () => {
    const clipped = async (clip: number) => (await run(await Session.start({ ...small, clip }))).losses;
    const any = await clipped(0);
    expect(await clipped(1e6)).toEqual(any);
    expect(await clipped(0.1)).not.toEqual(any);
  });

  test("accumulation of two passes of half the windows equals one step of the whole, up to rounding", async () => {
    const whole = { ...small, dropout: 0, batch: 4, steps: 4, warmup: 1 };
    const halves = { ...whole, batch: 2, accumulate: 2 };
    const [one, two] = [await run(await Session.start(whole)), await run(await Session.start(halves))];
    for (const [at, loss] of two.losses.entries()) expect(Math.abs(loss - one.losses[at])).toBeLessThan(1e-5);
    expect(stepsIn(two.events).at(-1)!.tokens).toBe(4 * 4 * 16);
  });

  test.each(["bfloat16", "float16"] as const)(
    "a run in %s is near the one in float32, with float32 copies of the weights",
    async (dtype) => {
      const settings = { ...small, dropout: 0 };
      const exact = await run(await Session.start(settings));
      const session = await Session.start({ ...settings, dtype });
      const { losses } = await run(session);
      expect(session.model.parameters().every((parameter) => parameter.dtype === dtype)).toBe(true);
      expect(Object.keys(session.optimizer.stateDict().tensors).some((name) => name.endsWith(".master"))).toBe(true);
      const differences = losses.map((loss, at) => Math.abs(loss - exact.losses[at]));
      expect(Math.max(...differences)).toBeLessThan(0.01);
    },
  );

  test("a run of a Llama trains too", async () => {
    const { losses } = await run(await Session.start({ ...small, architecture: "llama", steps: 30, warmup: 3 }));
    expect(losses.at(-1)).toBeLessThan(losses[0] - 0.5);
  });
});

describe("compiled steps equal plain ones", () => {
  const cases = [
    ["cpu", "a GPT", {}],
    ["cpu", "a Llama in bfloat16 with two passes", { architecture: "llama", accumulate: 2, dtype: "bfloat16" }],
    ["cpu", "a GPT without clipping", { clip: 0, accumulate: 2 }],
    ["metal", "a GPT", { layers: 1 }],
  ] as const satisfies readonly (readonly [string, string, Partial<Settings>])[];

  test.each(cases)(
    "compiled steps on %s have the losses, the norms and the weights of plain ones: %s",
    async (backend, _, given) => {
      const settings: Settings = { ...small, steps: 6, warmup: 1, sampleEvery: 0, ...given };
      const ran = async (compile: boolean) => {
        const session = await Session.start({ ...settings, evaluateEvery: 3 }, undefined, { compile });
        const before = callsOfCrossEntropy();
        const { events } = await run(session);
        const steps = stepsIn(events).map(({ loss, gradientNorm }) => [loss, gradientNorm]);
        const weights = session.model.parameters().map((parameter) => parameter.toArray());
        const { tensors } = session.optimizer.stateDict();
        const state = Object.values(tensors).map((tensor) => tensor.toArray());
        return { result: [steps, weights, state], calls: callsOfCrossEntropy() - before };
      };
      setBackend(backend);
      try {
        const [compiled, plain] = [await ran(true), await ran(false)];
        expect(compiled.result).toEqual(plain.result);
        if (backend === "metal") return; // on metal, calls run plainly
        // two calls are recorded; the rest are replays, which codepaths don't count
        const steps = settings.accumulate * settings.steps;
        expect(plain.calls - compiled.calls).toBeGreaterThanOrEqual(steps - 4 * settings.accumulate);
      } finally {
        setBackend("cpu");
      }
    },
  );

  test("compiled steps are the default on cpu, and rejected with a loss scaler", async () => {
    expect((await Session.start(small)).parts).toBeDefined();
    expect((await Session.start({ ...small, dtype: "float16" })).parts).toBeUndefined();
    expect((await Session.start(small, undefined, { compile: false })).parts).toBeUndefined();
    const refused = Session.start({ ...small, dtype: "float16" }, undefined, { compile: true });
    expect(refused).rejects.toThrow("float16");
  });
});

const callsOfCrossEntropy = (): number =>
  codepaths().reduce((sum, { operation, calls }) => sum + (operation === "crossEntropy" ? calls : 0), 0);

describe("a run that is stopped", () => {
  test("a stopped run is saved, and continues with the losses of an uninterrupted run, bit by bit", async () => {
    const { losses } = await run(await Session.start(small));
    const [checkpoints, controller] = [newFolder(), new AbortController()];
    const stopAtFive = (event: RunEvent) => void (event.kind === "step" && event.step === 5 && controller.abort());
    const first = await run(await Session.start(small), checkpoints, stopAtFive, controller.signal);
    expect(first.outcome).toMatchObject({ reason: "interrupted", step: 5 });
    expect(first.events.at(-1)).toEqual({ kind: "end", step: 5, reason: "interrupted" });
    const second = await run(await Session.resume(await loadRun(checkpoints), small), checkpoints);
    expect([...first.losses, ...second.losses]).toEqual([...losses]);
    expect(second.events[0]).toMatchObject({ kind: "start", step: 5 });
  });

  test.each(["bfloat16", "float16"] as const)("a stopped run continues bit by bit in %s too", async (dtype) => {
    const settings = { ...small, dtype, accumulate: 2 };
    const whole = await Session.start(settings);
    const { losses } = await run(whole);
    const checkpoints = newFolder();
    const first = await run(await Session.start({ ...settings, steps: 12 }), checkpoints, undefined, undefined);
    expect(first.losses).toEqual([...losses]);
    const eighth = await loadRun(join(checkpoints, checkpointName(8)));
    const resumed = await Session.resume(eighth, settings);
    expect((await run(resumed)).losses).toEqual(losses.slice(8));
    const weights = ({ model }: Session) => model.parameters().map((parameter) => parameter.toArray());
    expect(weights(resumed)).toEqual(weights(whole));
  });

  test("a stopped run can't continue as a model of another shape: the differences are listed", async () => {
    const checkpoints = newFolder();
    await run(await Session.start({ ...small, steps: 3, saveEvery: 0 }), checkpoints);
    const saved = await loadRun(checkpoints);
    const resumed = Session.resume(saved, { ...small, width: 32, layers: 3 });
    expect(resumed).rejects.toThrow("the settings do not match");
    expect(resumed).rejects.toThrow("layers: expected 2, got 3\n  width: expected 16, got 32");
  });
});

describe("numbers that are not finite", () => {
  const broken = async (at: number, change: (session: Session) => void, more: Partial<Settings> = {}) => {
    const [checkpoints, session] = [newFolder(), await Session.start({ ...small, saveEvery: 0, ...more })];
    const events: RunEvent[] = [];
    const during = (event: RunEvent) => {
      events.push(event);
      if (event.kind === "step" && event.step === at) change(session);
    };
    const error: unknown = await run(session, checkpoints, during).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(NotFiniteError);
    expect(events.at(-1)).toEqual({ kind: "end", step: at, reason: "failed" });
    return { error: error as NotFiniteError, checkpoints, events };
  };
  const set = (session: Session, name: string, value: number) =>
    noGrad(() => void fill_(session.model.namedParameters().get(name)!, value));

  test("a NaN stops the run in its last good state, and the error names the operation of the first NaN", async () => {
    // Some of the infinite products differ in sign: their difference is the first NaN.
    const { error, checkpoints } = await broken(5, (session) => set(session, "blocks.1.feedForward.up.weight", 3e38));
    expect(error.step).toBe(6);
    expect(error.firstOperation).toBeDefined();
    expect(error.message).toContain("it returned the first NaN");
    expect(error.message).toContain(error.firstOperation!);
    expect((await loadRun(checkpoints)).step).toBe(5);
  });

  test("for an infinite loss, the operation that made the first infinity is named", async () => {
    const { error, checkpoints } = await broken(2, ({ model }) => {
      const forward = model.forward.bind(model);
      spyOn(model, "forward").mockImplementation((...inputs) => mul(sign(forward(...inputs)), 3e38));
    });
    expect(error.message).toContain(
      "a loss of Infinity in step 3, which was not taken: [crossEntropy] it returned the first infinity or NaN",
    );
    expect(error.firstOperation).toBe("crossEntropy"); // the difference of -3e38 and 3e38 overflows
    expect((await loadRun(checkpoints)).step).toBe(2);
  });

  test("for gradients, the operation of the backward pass is named, with a finite loss", async () => {
    const { error, checkpoints } = await broken(2, ({ model }) => {
      const forward = model.forward.bind(model);
      const root = (logits: Tensor) => sqrt(mul(logits, 0)); // at 0 its derivative is 1/0, and that times 0 is NaN
      spyOn(model, "forward").mockImplementation((...inputs) => {
        const logits = forward(...inputs);
        return add(logits, root(logits));
      });
    });
    expect(error.message).toContain("gradients of norm NaN in step 3, which was not taken");
    expect(error.firstOperation).toStartWith("backward of ");
    expect(error.brokenParameter).toBeUndefined();
    expect((await loadRun(checkpoints)).step).toBe(2);
  });

  test("if only the norm is not finite, the message says that no operation is to blame", async () => {
    const { error } = await broken(2, (session) => set(session, "finalNorm.bias", 1e38), { batch: 1 });
    expect(error.message).toContain("every result is finite, but the global norm of the gradients is not");
    expect(error.firstOperation).toBeUndefined();
  });

  test("weights that are not finite are named, and not saved", async () => {
    const name = "blocks.0.attention.output.weight";
    const { error, checkpoints } = await broken(3, (session) => set(session, name, Number.NaN));
    expect(error.brokenParameter).toBe(name);
    expect(error.message).toContain(`the weights ${name} are not finite`);
    expect(existsSync(checkpoints)).toBe(false);
  });
});
