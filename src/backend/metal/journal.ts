/**
 * What was given to the device and is not known to be done. When a command buffer fails, everything from its first operation on
 * is computed again on another backend, in order: later operations may have read what it never wrote. Operations never change their
 * inputs, and storages in the journal are not changed in place before their readers are done, so that this is always possible.
 */
import { read } from "bun:ffi";
import { getOrMake } from "../../collections.ts";
import { BackendError } from "../../errors.ts";
import type { Storage } from "../../tensor/storage.ts";
import { runChecks } from "./checks.ts";
import type { MetalContext } from "./context.ts";

interface Entry {
  readonly ticket: number;
  readonly reads: readonly Storage[];
  readonly writes: readonly Storage[];
  /** Computes the operation on another backend, into host memory. */
  readonly redo: () => void;
}

interface Journal {
  entries: Entry[];
  knownFailures: number;
  recovering: boolean;
}

const journals = new WeakMap<MetalContext, Journal>();

const journalOf = (context: MetalContext): Journal =>
  getOrMake(journals, context, () => ({ entries: [], knownFailures: 0, recovering: false }));

/** Notes an operation that was encoded. Its storages stay until it is known to be done. */
export function noteEncoded(context: MetalContext, entry: Entry): void {
  const journal = journalOf(context);
  for (const storage of [...entry.reads, ...entry.writes]) storage.retain();
  journal.entries.push(entry);
  if (journal.entries.length % 64 === 0) forgetDone(context, journal);
}

/** Blocks until a ticket is complete, and mends what failed. */
export function settleTicket(context: MetalContext, ticket: number): void {
  const journal = journalOf(context);
  let failure: unknown;
  try {
    if (!isComplete(context, ticket)) context.wait(ticket);
  } catch (error) {
    if (!(error instanceof BackendError) || error.code !== "deviceFailed") throw error;
    failure = error;
  }
  if (journal.recovering) return;
  if (failures(context) !== journal.knownFailures) recover(context, journal, failure);
  runChecks(context);
}

/** Blocks until no operation under way reads a storage that is about to be changed in place. */
export function settleReaders(context: MetalContext, storage: Storage): void {
  const journal = journalOf(context);
  const last = journal.entries.findLast(({ reads }) => reads.includes(storage));
  if (last && !journal.recovering) settleTicket(context, last.ticket);
}

function recover(context: MetalContext, journal: Journal, failure: unknown): void {
  journal.recovering = true;
  try {
    waitForAll(context);
    const first = journal.entries.findIndex(({ ticket }) => hasFailed(context, ticket));
    journal.knownFailures = failures(context);
    const lost = first < 0 ? [] : journal.entries.splice(first);
    report(lost.length, failure);
    for (const entry of lost) {
      entry.redo();
      release(entry);
    }
    forgetDone(context, journal);
  } finally {
    journal.recovering = false;
  }
}

function waitForAll(context: MetalContext): void {
  try {
    context.wait();
  } catch (error) {
    if (!(error instanceof BackendError) || error.code !== "deviceFailed") throw error;
  }
}

const stateScratch = new Uint32Array(1);

function hasFailed(context: MetalContext, ticket: number): boolean {
  return context.native.orchard_ticket_poll(context.handle, ticket, stateScratch) !== 0;
}

const reported = new Set<string>();

function report(operations: number, failure: unknown): void {
  const reason = failure instanceof Error ? failure.message : "a command buffer failed";
  if (reported.has(reason)) return;
  reported.add(reason);
  console.warn(`[orchard] ${reason}\n[orchard] ${operations} operations are computed again on another backend.`);
}

function forgetDone(context: MetalContext, journal: Journal): void {
  if (failures(context) !== journal.knownFailures) return; // entries are needed until that is mended
  const open = journal.entries.findIndex(({ ticket }) => !isComplete(context, ticket));
  for (const entry of journal.entries.splice(0, open < 0 ? journal.entries.length : open)) release(entry);
}

function release({ reads, writes }: Entry): void {
  for (const storage of [...reads, ...writes]) storage.release();
}

/** Whether a ticket is complete; what failed counts too. */
export const isComplete = (context: MetalContext, ticket: number): boolean =>
  Number(read.u64(context.counterAddress, 0)) >= ticket;
const failures = (context: MetalContext): number => Number(read.u64(context.counterAddress, 8));
