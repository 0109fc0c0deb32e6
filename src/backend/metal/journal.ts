/**
 * The journal of operations that were submitted to the device and are not known to be done. When a command buffer
 * fails, all operations from its first one on are recomputed on another backend in order, since later operations may
 * have read results that were never written. This is always possible: operations never change their inputs, and
 * storages in the journal are not changed in place before their readers are done.
 */
import { read } from "bun:ffi";
import { getOrMake } from "../../core/collections.ts";
import { BackendError } from "../../core/errors.ts";
import { warnOnce } from "../../core/warn.ts";
import type { Storage } from "../../tensor/storage.ts";
import type { TicketRange } from "../backend.ts";
import { runChecks } from "./checks.ts";
import type { MetalContext } from "./context.ts";

interface Entry {
  /** The command buffers of the operation. */
  readonly tickets: TicketRange;
  readonly reads: readonly Storage[];
  readonly writes: readonly Storage[];
  /** Computes the operation on another backend, into host memory. */
  readonly recompute: () => void;
  /** Whether the operation can't be recomputed after a failure. The contents that it reads may then be replaced. */
  readonly isFinal?: boolean;
}

interface Journal {
  entries: Entry[];
  knownFailures: number;
  knownQueues: number;
  recovering: boolean;
}

const journals = new WeakMap<MetalContext, Journal>();

const journalOf = (context: MetalContext): Journal =>
  getOrMake(journals, context, () => ({ entries: [], knownFailures: 0, knownQueues: 0, recovering: false }));

/** Maximum number of pending operations. The next one waits for the older half. */
const LONGEST = 1024;
/** Number of operations between two checks for completed ones. */
const INTERVAL = 64;

/** Adds an encoded operation. The operation's storages are retained until it is known to be done. */
export function noteEncoded(context: MetalContext, entry: Entry): void {
  const journal = journalOf(context);
  for (let at = 0; at < entry.reads.length; at++) entry.reads[at].retain();
  for (let at = 0; at < entry.writes.length; at++) entry.writes[at].retain();
  journal.entries.push(entry);
  if (journal.recovering || journal.entries.length % INTERVAL !== 0) return;
  reportNewQueue(context, journal);
  if (failures(context) !== journal.knownFailures) recover(context, journal);
  else if (journal.entries.length >= LONGEST) waitForOlderHalf(context);
  forgetDone(context, journal);
  runChecks(context);
}

/** Releases the storages of completed operations. With `wait`, waits for all operations first. */
export function forgetFinished(context: MetalContext, { wait = false } = {}): void {
  if (wait && !journalOf(context).recovering) waitForTicket(context, context.commit());
  forgetDone(context, journalOf(context));
}

/**
 * Blocks until the older half of the pending operations is done, and releases its storages. The device continues with
 * the other half.
 */
export function waitForOlderHalf(context: MetalContext): void {
  const { entries, recovering } = journalOf(context);
  const middle = entries[entries.length >> 1];
  if (middle && !recovering) waitForTicket(context, middle.tickets.last);
}

/** Blocks until a ticket is complete, and recovers failed operations. */
export function waitForTicket(context: MetalContext, ticket: number): void {
  const journal = journalOf(context);
  if (!isComplete(context, ticket)) failureOf(context, ticket);
  if (journal.recovering) return;
  reportNewQueue(context, journal);
  if (failures(context) !== journal.knownFailures) recover(context, journal);
  forgetDone(context, journal);
  runChecks(context);
}

/** Blocks until no pending operation reads a storage that will be changed in place. */
export function waitForReaders(context: MetalContext, storage: Storage): void {
  waitForLast(context, ({ reads }) => reads.includes(storage));
}

/** Blocks until no pending operation accesses a storage whose memory will be replaced. */
export function waitForUsers(context: MetalContext, storage: Storage): void {
  waitForLast(context, ({ reads, writes }) => reads.includes(storage) || writes.includes(storage));
}

/**
 * Blocks until no pending operation that may be recomputed accesses the storages. Called before a replay changes their
 * contents.
 */
export function waitForRecomputable(context: MetalContext, storages: ReadonlySet<Storage>): void {
  const uses = (storage: Storage) => storages.has(storage);
  waitForLast(context, ({ reads, writes, isFinal }) => !isFinal && (reads.some(uses) || writes.some(uses)));
}

function waitForLast(context: MetalContext, uses: (entry: Entry) => boolean): void {
  const journal = journalOf(context);
  const last = journal.entries.findLast(uses);
  if (last && !journal.recovering) waitForTicket(context, last.tickets.last);
  runChecks(context); // errors describe the contents before this change
}

function recover(context: MetalContext, journal: Journal): void {
  journal.recovering = true;
  try {
    failureOf(context, context.commit());
    const first = journal.entries.findIndex(({ tickets }) => firstFailed(context, tickets) !== undefined);
    journal.knownFailures = failures(context);
    const lost = first < 0 ? [] : journal.entries.splice(first);
    // If no operations are lost, the caller that encoded a kernel or blit gets the error.
    if (lost[0]) report(context, lost[0], lost.length);
    for (const entry of lost) computeAgain(entry);
  } finally {
    journal.recovering = false;
  }
}

/**
 * Recomputes an operation. If that fails, reading its results throws the cause, and operations that depend on them fail
 * too.
 */
function computeAgain(entry: Entry): void {
  try {
    entry.recompute();
  } catch (error) {
    for (const storage of entry.writes) storage.lose(error);
  } finally {
    release(entry);
  }
}

/** Waits for a ticket. Returns the error if its command buffer failed. */
function failureOf(context: MetalContext, ticket: number): BackendError | undefined {
  try {
    context.wait(ticket);
    return undefined;
  } catch (error) {
    if (error instanceof BackendError && error.code === "deviceFailed") return error;
    throw error;
  }
}

const stateScratch = new Uint32Array(1);

/** Whether a ticket's command buffer failed. */
export function hasFailed(context: MetalContext, ticket: number): boolean {
  return ticket > 0 && context.native.orchard_ticket_poll(context.handle, ticket, stateScratch) !== 0;
}

function firstFailed(context: MetalContext, { first, last }: TicketRange): number | undefined {
  for (let ticket = first; ticket <= last; ticket++) if (hasFailed(context, ticket)) return ticket;
  return undefined;
}

function report(context: MetalContext, { tickets, isFinal }: Entry, operations: number): void {
  const reason =
    failureOf(context, firstFailed(context, tickets) ?? tickets.last)?.message ?? "a command buffer failed";
  const cause = reason.replace(/\d+/, ""); // ignore the number of the command buffer
  const again = operations === 1 ? "1 operation is" : `${operations} operations are`;
  const what = isFinal ? "the results of a compiled call are lost" : `${again} recomputed on another backend`;
  warnOnce(`${reason}\n[orchard] ${what}.`, cause);
}

/** Warns once that the device dropped work that was not at fault. The dylib runs it again; its note has details. */
function reportNewQueue(context: MetalContext, journal: Journal): void {
  const queues = queuesReplaced(context);
  if (queues === journal.knownQueues) return;
  journal.knownQueues = queues;
  const note = context.report().notes.at(-1);
  if (note !== undefined) warnOnce(`metal: ${note}`, "metal: a new queue");
}

function forgetDone(context: MetalContext, journal: Journal): void {
  if (failures(context) !== journal.knownFailures) return; // recovery needs the entries
  const open = journal.entries.findIndex(({ tickets }) => !isComplete(context, tickets.last));
  for (const entry of journal.entries.splice(0, open < 0 ? journal.entries.length : open)) release(entry);
}

function release({ reads, writes }: Entry): void {
  for (let at = 0; at < reads.length; at++) reads[at].release();
  for (let at = 0; at < writes.length; at++) writes[at].release();
}

/** Whether a ticket is complete. Failed ones are too. */
export const isComplete = (context: MetalContext, ticket: number): boolean =>
  Number(read.u64(context.counterAddress, 0)) >= ticket;
const failures = (context: MetalContext): number => Number(read.u64(context.counterAddress, 8));
const queuesReplaced = (context: MetalContext): number => Number(read.u64(context.counterAddress, 16));
