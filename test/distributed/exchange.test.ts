import { expect, test } from "bun:test";
import { ncclExchange } from "../../src/distributed/exchange.ts";
import type { Nccl } from "../../src/distributed/nccl.ts";
import { tensor, withBackend } from "../../src/index.ts";

test("memory of the host never reaches NCCL, whose kernels would end the GPU's context", () => {
  const calls: string[] = [];
  const nccl = { library: { name: "NCCL" }, allReduce: () => calls.push("allReduce") } as unknown as Nccl;
  const x = withBackend("reference", () => tensor([1, 2]).mul(2));
  expect(() => ncclExchange(nccl).allReduce("test", x)).toThrow("[test] expected a tensor on the GPU, got");
  expect(calls).toEqual([]);
});
