/** Tests the settings of ResNet: each choice alone, and both sides of each limit. */
import { expect, test } from "bun:test";
import { Settings } from "../../../../src/nn/models/loading/settings.ts";
import { describeResNet } from "../../../../src/nn/models/loading/vision/resnet.ts";

const describe = (own: object) =>
  describeResNet(new Settings(undefined, new Map(Object.entries({ model_type: "resnet", ...own }))));
const depths = [3, 4, 6, 3];

test("the defaults are those of `transformers`: ResNet-50", () => {
  const { stages, ...others } = describe({});
  expect(others).toEqual({ channels: 3, stem: 64, block: "bottleneck", activation: "relu", strideAt: "second" });
  expect(stages).toEqual(
    [256, 512, 1024, 2048].map((width, at) => ({ width, layers: depths[at], stride: at ? 2 : 1 })),
  );
});

test.each([
  [{ out_indices: [4] }, 4],
  [{ out_indices: [1, 3] }, 3],
  [{ out_indices: [3, 1] }, 3],
  [{ out_indices: [-1] }, 4],
  [{ out_indices: [-2] }, 3],
  [{ out_indices: [-3, 1] }, 2],
  [{ out_features: ["stage2"] }, 2],
  [{ out_features: ["stage1", "stage4"] }, 4],
  [{ out_features: ["stage1"], out_indices: [3] }, 3], // indices come first
])("the config %j gives %d stages", (own, count) => {
  expect(describe(own).stages.map(({ layers }) => layers)).toEqual(depths.slice(0, count));
});

test.each([
  { out_indices: [5] },
  { out_indices: [0] },
  { out_indices: [-6] },
  { out_indices: [1.5] },
  { out_features: ["stem"] },
  { out_features: ["stage5"] },
])("%j is rejected", (own) => {
  expect(() => describe(own)).toThrow("expected out_features to be stages up to 4");
});

test.each([
  [{ downsample_in_first_stage: true }, { first: 2, strideAt: "second" }],
  [{ downsample_in_bottleneck: true }, { first: 1, strideAt: "first" }],
  [{ downsample_in_bottleneck: false }, { first: 1, strideAt: "second" }],
])("%j determines where strides are", (own, { first, strideAt }) => {
  const { stages, strideAt: place } = describe(own);
  expect([stages.map(({ stride }) => stride), place]).toEqual([[first, 2, 2, 2], strideAt as typeof place]);
});

test.each([
  [{ layer_type: "wide" }, '"basic" or "bottleneck"'],
  [{ hidden_act: "tanh" }, "relu, gelu or silu"],
  [{ hidden_sizes: [256, 512], depths: [3] }, "one for each of depths"],
  [{ hidden_sizes: [2 ** 16], depths: [3] }, "one for each of depths"],
  [{ hidden_sizes: [8.5], depths: [3] }, "one for each of depths"],
  [{ width: 3 }, "width is not a setting of resnet"],
])("%j is rejected with the reason", (own, reason) => {
  expect(() => describe(own)).toThrow(reason);
});

test("the largest sizes are accepted", () => {
  const { stages } = describe({ hidden_sizes: [2 ** 16 - 1], depths: [2 ** 16 - 1], out_indices: [1] });
  expect(stages).toEqual([{ width: 2 ** 16 - 1, layers: 2 ** 16 - 1, stride: 1 }]);
});
