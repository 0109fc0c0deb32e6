/** Compares the counts of our kernels with the counts of other projects' kernels on the same operands. */
import { metalContext } from "../../../src/backend/metal/context.ts";
import { toDType, zeros } from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import type { Case } from "./cases.ts";
import { type Counts, count } from "./count.ts";
import { mlxCases } from "./mlx.ts";
import { launchPeer, type PeerCase } from "./peers.ts";

export const peerColumns = ["device KiB", "", "threadgroup KiB", "", "barriers", "", "M mac", "", "groups"] as const;

/** Returns a row for each peer that supports the call. @throws if a peer's result differs from ours */
export function besidePeers(folder: string, counted: Case, ours: Counts): string[][] {
  return mlxCases()
    .filter(({ name }) => name === counted.name)
    .map((peer) => {
      const theirs = countPeer(folder, peer, counted);
      return [
        counted.name,
        ...pair(ours.bytes, theirs.bytes, 1024),
        ...pair(ours.threadgroupBytes, theirs.threadgroupBytes, 1024),
        ...pair(ours.barriers, theirs.barriers, 1),
        ...pair(ours.matrixWork, theirs.matrixWork, 1e6),
        `${ours.threadgroups} · ${theirs.threadgroups}`,
      ];
    });
}

function pair(ours: number, theirs: number, unit: number): [string, string] {
  const text = (value: number) => (value / unit).toFixed(unit === 1 ? 0 : value / unit < 10 ? 2 : 0);
  return [theirs === 0 ? "" : (ours / theirs).toFixed(2), ours + theirs === 0 ? "" : `${text(ours)} · ${text(theirs)}`];
}

function countPeer(folder: string, peer: PeerCase, { operands, run }: Case): Counts {
  const out = zeros([...peer.shape], { dtype: peer.dtype });
  const launches = peer.launches(operands, out);
  metalContext().configure("timeout_ms", String(10 * 60_000)); // an incomplete tile of 64 × 64 adds much work here
  const counts = count(() => {
    for (const launch of launches) launchPeer(folder, launch);
  });
  check(peer, out, run() as Tensor);
  return counts;
}

/**
 * The tolerance relative to the largest element: sums of float16 differ by this if only one of the two accumulates in
 * float32.
 */
const tolerance = { float32: 1e-4, float16: 1e-2 } as const;

function check({ name, dtype }: PeerCase, theirs: Tensor, ours: Tensor): void {
  const [left, right] = [theirs, ours].map((x) => Array.from(toDType(x, "float32").dataSync() as Float32Array));
  const largest = right.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const bound = tolerance[dtype as keyof typeof tolerance] * largest;
  const at = left.findIndex((value, index) => !(Math.abs(value - right[index]) <= bound));
  if (at >= 0) throw new Error(`${name}: element ${at} is ${left[at]}, but ${right[at]} in Orchard's result`);
}
