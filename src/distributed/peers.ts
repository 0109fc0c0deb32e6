/** Where the other ranks run, and whether those of this machine are alive. */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** What a rank tells the others of itself. */
export interface Peer {
  /** The machine, or the container: process numbers of one place mean the same. */
  readonly place: string;
  readonly pid: number;
  readonly host: string;
}

/** Bytes of a rank's description. */
export const PEER_BYTES = 256;

/** This process. */
export function ownPeer(): Peer {
  const [boot, space] = [read(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()), pidSpace()];
  return { place: `${hostname()}/${boot.slice(0, 8)}/${space}`, pid: process.pid, host: hostname() };
}

/** The namespace in which process numbers count (Linux). */
const pidSpace = (): string => read(() => readlinkSync("/proc/self/ns/pid"));

function read(body: () => string): string {
  try {
    return body();
  } catch {
    return "";
  }
}

export function encodePeer({ place, pid, host }: Peer): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(new ArrayBuffer(PEER_BYTES));
  bytes.set(new TextEncoder().encode(`${pid}\n${host.slice(0, 64)}\n${place}`).subarray(0, PEER_BYTES));
  return bytes;
}

export function decodePeers(bytes: Uint8Array): Peer[] {
  return Array.from({ length: bytes.length / PEER_BYTES }, (_, rank) => {
    const text = Buffer.from(bytes.subarray(rank * PEER_BYTES, (rank + 1) * PEER_BYTES)).toString();
    const [pid, host, place] = text.replace(/\0.*$/s, "").split("\n");
    return { pid: Number(pid), host: host!, place: place! };
  });
}

/** The ranks of this machine whose processes have ended. */
export function lostAmong(peers: readonly Peer[], own: number): number[] {
  const { place } = peers[own]!;
  return [...peers.keys()].filter((rank) => peers[rank]!.place === place && !isAlive(peers[rank]!.pid));
}

/** Whether there is such a process, and it is more than a record that nobody has asked for. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  const state = read(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  return !/^\d+ \(.*\) [ZX] /s.test(state);
}
