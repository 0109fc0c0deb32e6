/** Writes event files for TensorBoard. */
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { DisposedError } from "../../core/errors.ts";
import { aNumber, aPath, someNumber, text } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { withFileErrors } from "../file_errors.ts";
import { type EventContent, encodeEvent, encodeRecord } from "./event.ts";

const step = aNumber({
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
});

const writerParameters = parameters("SummaryWriter", { folder: operand(aPath) });
const scalarParameters = parameters("SummaryWriter.addScalar", {
  tag: operand(text),
  value: operand(someNumber),
  step: operand(step),
});

/** The number of files that this process has opened, so that two in one second have different names. */
let opened = 0;

/**
 * Writes scalars to a file for TensorBoard: `tensorboard --logdir runs`. Every call writes immediately, so TensorBoard
 * can show a run in progress. The files of several writers in a folder are one run.
 *
 * @param folder the folder of the file, which gets a unique name; the folder is created if needed
 *
 * @example
 * using log = new io.SummaryWriter("runs/first");
 * for (let step = 0; step < 100; step++) log.addScalar("loss", train(), step);
 *
 * @throws {ArgumentError} @throws {FileError}
 */
export class SummaryWriter implements Disposable {
  readonly path: string;
  #file: number | undefined;

  constructor(folder: string);
  constructor(...values: unknown[]) {
    const { folder } = writerParameters(values);
    const seconds = String(Math.floor(Date.now() / 1000)).padStart(10, "0");
    this.path = join(folder, `events.out.tfevents.${seconds}.${hostname()}.${process.pid}.${opened++}`);
    withFileErrors("SummaryWriter", folder, () => mkdirSync(folder, { recursive: true }));
    this.#file = withFileErrors("SummaryWriter", this.path, () => openSync(this.path, "wx"));
    this.#write({ fileVersion: "brain.Event:2" });
  }

  /**
   * Adds the value of a series at a step, as float32. A slash in a tag groups charts: `train/loss`.
   *
   * @throws {ArgumentError} @throws {FileError} `diskFull` … @throws {DisposedError} after `close()`
   */
  addScalar(tag: string, value: number, step: number): void;
  addScalar(...values: unknown[]): void {
    const { tag, value, step } = scalarParameters(values);
    this.#write({ step, scalars: [[tag, value]] });
  }

  /** @internal Adds scalars of one step in one event. */
  addScalars(scalars: NonNullable<EventContent["scalars"]>, step: number): void {
    this.#write({ step, scalars });
  }

  /** @internal Drops everything logged from a step on, because a run resumes there. */
  startSession(step: number): void {
    this.#write({ step, startsSession: true });
  }

  /** Closes the file. */
  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #write(content: EventContent): void {
    const file = this.#file;
    if (file === undefined) throw new DisposedError("SummaryWriter", "closed", "the writer was closed");
    const bytes = encodeRecord(encodeEvent(Date.now() / 1000, content));
    withFileErrors("SummaryWriter", this.path, () => {
      for (let done = 0; done < bytes.byteLength; ) done += writeSync(file, bytes, done);
    });
  }
}
