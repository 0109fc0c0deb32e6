/**
 * Predicts the scaling of data-parallel training from a model of latency and bandwidth (Thakur, Rabenseifner and Gropp,
 * "Optimization of Collective Communication Operations in MPICH", 2005): a message of b bytes takes α + b / β seconds.
 *
 *     bun bench/support/distributed_model.ts      # the table of docs/distributed.md
 */

/** A connection between ranks. */
export interface Network {
  readonly name: string;
  /** α: seconds of an empty message. */
  readonly latency: number;
  /** β: bytes per second of a rank while all others send too. */
  readonly bandwidth: number;
}

/** A training step of one rank. */
export interface Work {
  /** Bytes of gradients. */
  readonly bytes: number;
  /** Seconds of a step without an exchange. */
  readonly seconds: number;
  /** The fraction of `seconds` after the first bucket is ready, when gradients can be exchanged during backward. */
  readonly overlap: number;
}

/**
 * Returns the seconds of a ring allReduce: n − 1 steps that reduce parts of b / n bytes, and the same number that
 * gather them.
 */
export const ring = (ranks: number, bytes: number, { latency, bandwidth }: Network): number =>
  2 * (ranks - 1) * (latency + bytes / ranks / bandwidth);

/**
 * Returns the seconds of an allReduce by recursive halving and doubling: ⌈log₂ n⌉ steps each way, with the bytes of a
 * ring.
 */
export const halving = (ranks: number, bytes: number, { latency, bandwidth }: Network): number =>
  2 * Math.ceil(Math.log2(ranks)) * latency + (2 * (ranks - 1) * bytes) / ranks / bandwidth;

/**
 * Returns the tokens per second of n ranks divided by n times the tokens per second of one. A step takes longer by the
 * part of the exchange that does not overlap with backward.
 */
export function efficiency(ranks: number, { bytes, seconds, overlap }: Work, network: Network): number {
  const exchange = Math.min(ring(ranks, bytes, network), halving(ranks, bytes, network));
  return seconds / (seconds + Math.max(0, exchange - overlap * seconds));
}

/** Fits α and β to measured times of two sizes between two ranks, where an allReduce sends all bytes. */
export function fitted(name: string, few: readonly [number, number], many: readonly [number, number]): Network {
  const bandwidth = (many[0] - few[0]) / (many[1] - few[1]);
  return { name, bandwidth, latency: Math.max(0, (few[1] - few[0] / bandwidth) / 2) };
}

const MB = 1e6;

/**
 * Networks. The first two were measured between ranks (docs/distributed.md, Speed); the others are from data sheets.
 */
export const networks: readonly Network[] = [
  fitted("shared memory, measured", [16_384, 7.9e-6], [4_194_304, 0.58e-3]),
  fitted("TCP between two namespaces, measured", [16_384, 14.4e-6], [4_194_304, 10.9e-3]),
  { name: "Ethernet, 1 Gbit/s", latency: 50e-6, bandwidth: 117 * MB },
  { name: "Ethernet, 10 Gbit/s", latency: 30e-6, bandwidth: 1170 * MB },
  { name: "Thunderbolt 4, IP", latency: 40e-6, bandwidth: 2000 * MB },
  { name: "InfiniBand, 100 Gbit/s", latency: 2e-6, bandwidth: 11_000 * MB },
];

/** Connections of GPUs. The first was measured with NCCL between two H200; the second is from a data sheet. */
export const gpuNetworks: readonly Network[] = [
  fitted("NVLink of H200, measured", [16_384, 26.8e-6], [268_435_456, 920.4e-6]),
  { name: "InfiniBand, 400 Gbit/s for each GPU", latency: 5e-6, bandwidth: 48_000 * MB },
];

const RANKS = [2, 4, 8, 64, 256, 1024] as const;

if (import.meta.main) {
  // 10.9 M parameters: 43.6 MB of gradients; 1,024 tokens took 0.31 s on two threads. No exchange overlaps with
  // backward.
  const works: readonly [string, Work][] = [
    ["1,024 tokens", { bytes: 43.6 * MB, seconds: 0.31, overlap: 0 }],
    ["8,192 tokens", { bytes: 43.6 * MB, seconds: 8 * 0.31, overlap: 0 }],
  ];
  print(networks, works);
  // 124.5 M parameters in 148 tensors: 498 MB of float32 gradients, and a flag for each tensor.
  print(gpuNetworks, [["8,192 tokens", { bytes: 4 * (124.48 * MB + 148), seconds: 0.2107, overlap: 0 }]]);
}

function print(rows: readonly Network[], works: readonly [string, Work][]): void {
  console.log(`| network | a rank's batch | ${RANKS.map((ranks) => `${ranks} ranks`).join(" | ")} |`);
  console.log(`|---|---|${RANKS.map(() => "---|").join("")}`);
  for (const network of rows)
    for (const [batch, work] of works) {
      const cells = RANKS.map((ranks) => efficiency(ranks, work, network).toFixed(3));
      console.log(`| ${network.name} | ${batch} | ${cells.join(" | ")} |`);
    }
}
