import { expect, test } from "bun:test";
import { CommonBucket, SharedBucket } from "../../src/distributed/buckets.ts";
import { type Exchange, ncclExchange } from "../../src/distributed/exchange.ts";
import { Job, type Steps } from "../../src/distributed/job.ts";
import type { Nccl } from "../../src/distributed/nccl.ts";
import type { Connection } from "../../src/distributed/world.ts";
import { codepaths, ones, resetCodepaths, tensor, withBackend, zeros } from "../../src/index.ts";
import { copyInto } from "../../src/ops/copy/copy.ts";

test("memory of the host never reaches NCCL, whose kernels would end the GPU's context", () => {
  const calls: string[] = [];
  const nccl = { library: { name: "NCCL" }, allReduce: () => calls.push("allReduce") } as unknown as Nccl;
  const x = withBackend("reference", () => tensor([1, 2]).mul(2));
  expect(() => ncclExchange(nccl).allReduce("test", x)).toThrow("[test] expected a tensor on the GPU, got");
  expect(calls).toEqual([]);
});

test("an exchange that is complete at once leaves the means, and is counted", () => {
  const members = [3, 5].map((size) => zeros([size], { requiresGrad: true }));
  for (const member of members) member.grad = ones(member.shape);
  const exchange: Exchange = {
    name: "a library",
    isReady: () => true,
    allReduce: () => ({ test: () => true }),
    reduceParts: (_, from, to) => ({ test: () => copyInto(to, from.narrow(0, 0, to.size)) !== null }),
    allGather: () => ({ test: () => true }),
  };
  const queue = {
    begin(operation: string, _: unknown, steps: () => Steps<void>) {
      const job = new Job(operation, steps);
      job.start();
      return job;
    },
    wait: (job: Job<void>) => job.result,
  };
  const connection = { queue } as unknown as Connection;
  resetCodepaths();
  new CommonBucket(connection, exchange, members).finish(connection, 2);
  expect(members.map(({ grad }) => grad?.toArray())).toEqual([Array(3).fill(0.5), Array(5).fill(0.5)]);
  const owners = new Map(members.map((member, owner) => [member, owner]));
  new SharedBucket(connection, exchange, members, owners, 0, 2).finish(connection, 2);
  expect(members.map(({ grad }) => grad?.toArray())).toEqual([Array(3).fill(0.25), undefined]);
  const counted = codepaths().filter(({ operation }) => operation === "dataParallel");
  expect(counted.map(({ reason, calls }) => [reason, calls]).sort()).toEqual([
    ["allReduce over a library", 1],
    ["reduceScatter over a library", 1],
  ]);
});
