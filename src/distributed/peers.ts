/** Tracks where the other ranks run and whether they are alive. */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { codeOf } from "../core/causes.ts";

/** Information that a rank sends to the others about itself. */
export interface Peer {
  /** The machine or container, within which process IDs are unique. */
  readonly place: string;
  readonly pid: number;
  readonly host: string;
}

/** A lost rank. */
export interface Lost {
  readonly rank: number;
  /** The event, as text that follows the rank in a message: `(process 301 on mac-1) ended`. */
  readonly fate: string;
}

/** Returns the information of this process. */
export function ownPeer(): Peer {
  const [boot, space] = [read(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()), pidSpace()];
  return { place: `${hostname()}/${boot.slice(0, 8)}/${space}`, pid: process.pid, host: hostname() };
}

/** Returns the PID namespace (Linux). */
const pidSpace = (): string => read(() => readlinkSync("/proc/self/ns/pid"));

function read(body: () => string): string {
  try {
    return body();
  } catch {
    return "";
  }
}

export const encodePeer = ({ place, pid, host }: Peer): string => `${pid}\n${host.slice(0, 64)}\n${place}`;

export function decodePeer(text: string): Peer {
  const [pid, host, place] = text.split("\n");
  return { pid: Number(pid), host: host, place: place };
}

/** Milliseconds between two checks whether ranks are alive. */
export const LOOK_AFTER = 500;

/** Checks the other ranks every {@link LOOK_AFTER} milliseconds while this one waits. */
export class Watch {
  /** The number of consecutive checks that found a rank stopped. */
  private readonly stops = new Map<number, number>();

  /**
   * @param seconds the maximum time that a rank may be stopped or silent
   * @param missing returns the ranks that the heartbeat reports missing
   */
  constructor(
    private readonly peers: readonly Peer[],
    private readonly rank: number,
    private readonly seconds: number,
    private readonly missing: () => readonly number[],
  ) {}

  /** Returns the lost ranks. */
  lost(): Lost[] {
    const { place } = this.peers[this.rank];
    const missing = new Set(this.missing());
    return [...this.peers.keys()].flatMap((rank) => {
      const fate = missing.has(rank) ? "silent" : this.peers[rank].place === place ? this.fateHere(rank) : undefined;
      return fate === undefined ? [] : [{ rank, fate: this.describe(rank, fate) }];
    });
  }

  private fateHere(rank: number): "ended" | "stopped" | undefined {
    const state = stateOf(this.peers[rank].pid);
    if (state === "ended") return state;
    const count = state === "stopped" ? (this.stops.get(rank) ?? 0) + 1 : 0;
    this.stops.set(rank, count);
    return count * LOOK_AFTER > this.seconds * 1000 ? "stopped" : undefined;
  }

  private describe(rank: number, fate: "ended" | "stopped" | "silent"): string {
    const { pid, host } = this.peers[rank];
    const what = {
      ended: "ended",
      stopped: `has been stopped for ${this.seconds} s`,
      silent: `has been silent for ${this.seconds} s`,
    }[fate];
    return `(process ${pid} on ${host}) ${what}`;
  }
}

/** Returns the state of a process; zombies count as ended. */
function stateOf(pid: number): "running" | "stopped" | "ended" {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) !== "EPERM") return "ended";
  }
  const [, state = ""] = /^\d+ \(.*\) (\w) /s.exec(read(() => readFileSync(`/proc/${pid}/stat`, "utf8"))) ?? [];
  if ("ZX".includes(state) && state !== "") return "ended";
  return state === "T" ? "stopped" : "running";
}
