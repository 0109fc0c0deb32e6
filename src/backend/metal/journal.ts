/**
 * What was given to the device and is not known to be done. When a command buffer fails, everything from its first
 * operation on is computed again on another backend, in order: later operations may have read what it never wrote.
 * Operations never change their inputs, and storages in the journal are not changed in place before their readers are
 * done, so that this is always possible.
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
  /** The command buffers that it lies in. */
  readonly tickets: TicketRange;
  readonly reads: readonly Storage[];
  readonly writes: readonly Storage[];
  /** Computes the operation on another backend, into host memory. */
  readonly recompute: () => void;
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

/** Operations that may be under way before the next one waits for the older half of them. */
const LONGEST = 1024;
/** Operations between two looks at what is done. */
const INTERVAL = 64;

/** Notes an operation that was encoded. Its storages stay until it is known to be done. */
export function noteEncoded(context: MetalContext, entry: Entry): void {
  const journal = journalOf(context);
  for (const storage of [...entry.reads, ...entry.writes]) storage.retain();
  journal.entries.push(entry);
  if (journal.recovering || journal.entries.length % INTERVAL !== 0) return;
  reportNewQueue(context, journal);
  if (failures(context) !== journal.knownFailures) recover(context, journal);
  else if (journal.entries.length >= LONGEST) waitForOlderHalf(context);
  forgetDone(context, journal);
  runChecks(context);
}

/** Lets go of the storages of what is done. With `wait`, everything is done first. */
export function forgetFinished(context: MetalContext, { wait = false } = {}): void {
  if (wait && !journalOf(context).recovering) waitForTicket(context, context.commit());
  forgetDone(context, journalOf(context));
}

/**
 * Blocks until the older half of what is under way is done, and lets go of its storages; the device goes on with the
 * other half.
 */
export function waitForOlderHalf(context: MetalContext): void {
  const { entries, recovering } = journalOf(context);
  const middle = entries[entries.length >> 1];
  if (middle && !recovering) waitForTicket(context, middle.tickets.last);
}

/** Blocks until a ticket is complete, and recovers what failed. */
export function waitForTicket(context: MetalContext, ticket: number): void {
  const journal = journalOf(context);
  if (!isComplete(context, ticket)) failureOf(context, ticket);
  if (journal.recovering) return;
  reportNewQueue(context, journal);
  if (failures(context) !== journal.knownFailures) recover(context, journal);
  forgetDone(context, journal);
  runChecks(context);
}

/** Blocks until no operation under way reads a storage that is about to be changed in place. */
export function waitForReaders(context: MetalContext, storage: Storage): void {
  waitForLast(context, ({ reads }) => reads.includes(storage));
}

/** Blocks until no operation under way reads or writes a storage that is about to get other memory. */
export function waitForUsers(context: MetalContext, storage: Storage): void {
  waitForLast(context, ({ reads, writes }) => reads.includes(storage) || writes.includes(storage));
}

function waitForLast(context: MetalContext, uses: (entry: Entry) => boolean): void {
  const journal = journalOf(context);
  const last = journal.entries.findLast(uses);
  if (last && !journal.recovering) waitForTicket(context, last.tickets.last);
  runChecks(context); // the errors of what is about to change say what it was
}

function recover(context: MetalContext, journal: Journal): void {
  journal.recovering = true;
  try {
    failureOf(context, context.commit());
    const first = journal.entries.findIndex(({ tickets }) => firstFailed(context, tickets) !== undefined);
    journal.knownFailures = failures(context);
    const lost = first < 0 ? [] : journal.entries.splice(first);
    if (lost[0]) report(context, lost[0], lost.length); // else whoever encoded it, a kernel or a blit, gets the error
    for (const entry of lost) computeAgain(entry);
  } finally {
    journal.recovering = false;
  }
}

/**
 * Whoever reads what can't be computed again gets the cause; what depends on it can't be computed either; everything
 * else can.
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

/** Waits for a ticket; why its command buffer failed, where it did. */
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

function report(context: MetalContext, { tickets }: Entry, operations: number): void {
  const reason =
    failureOf(context, firstFailed(context, tickets) ?? tickets.last)?.message ?? "a command buffer failed";
  const cause = reason.replace(/\d+/, ""); // the number of the command buffer makes no other cause
  const again = operations === 1 ? "1 operation is" : `${operations} operations are`;
  warnOnce(`${reason}\n[orchard] ${again} computed again on another backend.`, cause);
}

/** Warns once that the device dropped work that was not to blame: the dylib runs it again, and its note says more. */
function reportNewQueue(context: MetalContext, journal: Journal): void {
  const queues = queuesReplaced(context);
  if (queues === journal.knownQueues) return;
  journal.knownQueues = queues;
  const note = context.report().notes.at(-1);
  if (note !== undefined) warnOnce(`metal: ${note}`, "metal: a new queue");
}

function forgetDone(context: MetalContext, journal: Journal): void {
  if (failures(context) !== journal.knownFailures) return; // entries are needed until that is recovered
  const open = journal.entries.findIndex(({ tickets }) => !isComplete(context, tickets.last));
  for (const entry of journal.entries.splice(0, open < 0 ? journal.entries.length : open)) release(entry);
}

function release({ reads, writes }: Entry): void {
  for (const storage of [...reads, ...writes]) storage.release();
}

/** Whether a ticket is complete; what failed counts too. */
export const isComplete = (context: MetalContext, ticket: number): boolean =>
  Number(read.u64(context.counterAddress, 0)) >= ticket;
const failures = (context: MetalContext): number => Number(read.u64(context.counterAddress, 8));
const queuesReplaced = (context: MetalContext): number => Number(read.u64(context.counterAddress, 16));
